//! A chart as a figure of Plotly: traces and axes without colours, which the page adds for light or dark.

use super::{Axis, Chart, Draw, Series};
use crate::units::grouped;
use plotly::common::{
    Anchor, DashType, ErrorData, ErrorType, ExponentFormat, Line, LineShape, Marker, MarkerSymbol, Mode,
    Orientation, Title,
};
use plotly::configuration::DisplayModeBar;
use plotly::layout::{self, AxisType, BarMode, HoverMode, Legend, Margin, RangeMode, TraceOrder};
use plotly::{Bar, Configuration, Layout, Plot, Scatter, Trace};
use serde_json::Value;

/// Shapes of the marks, which distinguish series without colours.
const MARKS: [MarkerSymbol; 6] = [
    MarkerSymbol::Circle,
    MarkerSymbol::Square,
    MarkerSymbol::Diamond,
    MarkerSymbol::TriangleUp,
    MarkerSymbol::Cross,
    MarkerSymbol::TriangleDown,
];

/// The figure as JSON: `data`, `layout`, `config` of Plotly, with the hue of each trace in its `meta`.
///
/// A `<` is escaped, so that no name can end the script element that holds the text.
pub(super) fn to_json(chart: &Chart) -> String {
    let mut plot = Plot::new();
    for series in &chart.series {
        plot.add_trace(trace(series));
    }
    plot.set_layout(layout(chart));
    plot.set_configuration(
        Configuration::new().display_logo(false).display_mode_bar(DisplayModeBar::False).scroll_zoom(false),
    );
    let mut figure: Value = serde_json::from_str(&plot.to_json()).expect("the crate writes JSON");
    for (place, series) in chart.series.iter().enumerate() {
        // The crate's bars have no field for `meta`.
        figure["data"][place]["meta"] = series.hue.into();
        if series.hidden {
            figure["data"][place]["visible"] = "legendonly".into();
        }
    }
    figure.to_string().replace('<', "\\u003c")
}

fn trace(series: &Series) -> Box<dyn Trace> {
    let (x, y): (Vec<f64>, Vec<f64>) = series.points.iter().copied().unzip();
    if series.draw == Draw::Bars {
        let bars = Bar::new(x, y).name(escape(&series.name)).marker(Marker::new());
        return if series.errors.is_empty() { bars } else { bars.error_y(errors(series)) };
    }
    let shape = if series.draw == Draw::Steps { LineShape::Hv } else { LineShape::Linear };
    let dash = if series.dashed { DashType::Dash } else { DashType::Solid };
    let (mode, size) = match series.draw {
        Draw::Points => (Mode::LinesMarkers, 7),
        Draw::Dots => (Mode::Markers, 4),
        Draw::Marks => (Mode::Markers, 10),
        _ => (Mode::Lines, 7),
    };
    let scatter = Scatter::new(x, y)
        .name(escape(&series.name))
        .mode(mode)
        .line(Line::new().shape(shape).dash(dash).width(2.0))
        .marker(Marker::new().symbol(MARKS[series.hue % MARKS.len()].clone()).size(size));
    if series.errors.is_empty() {
        return scatter;
    }
    scatter.error_y(errors(series))
}

fn errors(series: &Series) -> ErrorData {
    ErrorData::new(ErrorType::Data).array(series.errors.clone()).thickness(1.5).width(4)
}

fn layout(chart: &Chart) -> Layout {
    let range = |pick: fn(&(f64, f64)) -> f64| -> (f64, f64) {
        let values = chart.series.iter().flat_map(|s| &s.points).map(pick).filter(|v| v.is_finite());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    // Dots are single observations, so the hover text shows the closest dot instead of all series at one x.
    let alone = chart.series.iter().any(|series| series.draw == Draw::Dots);
    Layout::new()
        .auto_size(true)
        .hover_mode(if alone { HoverMode::Closest } else { HoverMode::XUnified })
        .bar_mode(BarMode::Stack)
        .show_legend(chart.series.len() > 1)
        .legend(
            Legend::new()
                .orientation(Orientation::Horizontal)
                .trace_order(TraceOrder::Normal)
                .x(0.0)
                .x_anchor(Anchor::Left)
                .y(1.02)
                .y_anchor(Anchor::Bottom),
        )
        .margin(Margin::new().left(56).right(16).top(16).bottom(48))
        .x_axis(axis(&chart.x, range(|point| point.0)))
        .y_axis(axis(&chart.y, range(|point| point.1)))
}

fn axis(axis: &Axis, range: (f64, f64)) -> layout::Axis {
    let ticks = match (axis.ticks.is_empty(), axis.log) {
        (false, _) => axis.ticks.clone(),
        (true, true) => decade_ticks(range),
        (true, false) => Vec::new(),
    };
    let mut drawn = layout::Axis::new()
        .title(Title::with_text(escape(&axis.label)))
        .type_(if axis.log { AxisType::Log } else { AxisType::Linear })
        .auto_margin(true)
        .zero_line(false)
        .range_mode(if axis.names.is_empty() { RangeMode::ToZero } else { RangeMode::Normal })
        .exponent_format(ExponentFormat::None)
        .separate_thousands(true)
        .hover_format(",.4~g");
    if !axis.names.is_empty() {
        let names = axis.names.iter().map(|name| escape(name)).collect();
        drawn = drawn.tick_values((0..axis.names.len()).map(|place| place as f64).collect()).tick_text(names);
    } else if !ticks.is_empty() {
        let text = ticks.iter().copied().map(tick_text).collect();
        drawn = drawn.tick_values(ticks).tick_text(text);
    }
    drawn
}

/// Ticks at 1, 2 and 5 of each decade that the range touches, or at 1 only if those would crowd the axis. None if fewer than two of them are
/// within the range; Plotly then chooses its own ticks.
fn decade_ticks((low, high): (f64, f64)) -> Vec<f64> {
    if !(low > 0.0 && high.is_finite()) {
        return Vec::new();
    }
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let steps: &[f64] = if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let ticks: Vec<f64> =
        decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade))).collect();
    let within = ticks.iter().filter(|tick| (low..=high).contains(*tick)).count();
    if within < 2 { Vec::new() } else { ticks }
}

/// A tick label, as Plotly formats its own.
fn tick_text(tick: f64) -> String {
    if tick >= 1000.0 && tick.fract() == 0.0 { grouped(tick as u64) } else { format!("{tick}") }
}

/// Escapes a name or label, because Plotly would interpret some markup in it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_name_does_not_end_the_script_element() {
        let series = Series::new("</script><b>", 0, vec![(1.0, 2.0)]);
        let chart = Chart::new("", Axis::linear("</script>"), Axis::log("ms"), [series]);
        let json = to_json(&chart);
        assert!(!json.contains('<'), "{json}");
        serde_json::from_str::<serde_json::Value>(&json).expect("the figure is JSON");
    }

    #[test]
    fn log_ticks_cover_the_range() {
        let ticks = decade_ticks((3.0, 420.0));
        assert!(ticks[0] <= 3.0 && ticks[ticks.len() - 1] >= 420.0);
        assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(decade_ticks((0.0, 10.0)), Vec::<f64>::new());
        assert_eq!(decade_ticks((1e-3, 1e6)).len(), 10);
        assert_eq!(decade_ticks((210.0, 420.0)), Vec::<f64>::new());
        assert_eq!(decade_ticks((110.0, 520.0)).len(), 6);
    }
}
