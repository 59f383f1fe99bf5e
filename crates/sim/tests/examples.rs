//! The programs in `examples/` show what the guide says they do.

#![allow(dead_code, reason = "the programs' `main` functions are not called")]

#[path = "../examples/own_layer.rs"]
mod own_layer;
#[path = "../examples/own_order.rs"]
mod own_order;

use headstack_model::Nanos;

#[test]
fn own_layer_adds_its_delay_to_each_response() {
    let [direct, delayed] = [0, 2].map(|ms| own_layer::mean_response_ms(Nanos::from_ms(f64::from(ms))));
    // A later start also changes the angle that each read meets: the mean moves by a small part of a turn.
    assert!((delayed - direct - 2.0).abs() < 0.5, "{direct:.2} ms without the link, {delayed:.2} ms with it");
}

#[test]
fn own_order_serves_short_requests_before_long_ones() {
    let sptf = headstack_policy::order::by_name("sptf").expect("it is built in");
    let [short, long] = own_order::mean_responses_ms(sptf);
    let [first, last] = own_order::mean_responses_ms(Box::new(own_order::ShortestFirst));
    let means = format!("SPTF {short:.1} and {long:.1} ms, own {first:.1} and {last:.1} ms");
    assert!(first < short && last > 10.0 * long && last > 10.0 * first, "{means}");
}
