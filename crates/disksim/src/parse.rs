//! Parser of DiskSim's parameter language: blocks, values, instances and topology.

use crate::lexer::{Place, Token};
use headstack_model::SpecError;
use std::rc::Rc;

/// Maximum nesting of blocks, lists and topologies.
const DEPTH_MAX: usize = 64;
/// Maximum number of names that ranges (`disk0 .. disk7`) expand to in total.
const RANGE_MAX: usize = 1 << 16;

/// `type NAME { key = value, … }`; a block that is a value may have no name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) params: Vec<Param>,
    pub(crate) place: Place,
}

/// `key = value` in a block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) key: String,
    /// Shared, because a list of keys may have one value.
    pub(crate) value: Rc<Value>,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Int(i64),
    Float(f64),
    Word(String),
    List(Vec<Value>),
    Block(Block),
}

impl Value {
    pub(crate) fn word(&self) -> Option<&str> {
        if let Value::Word(word) = self { Some(word) } else { None }
    }
}

/// A component of the topology with those below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) below: Vec<Node>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) blocks: Vec<Block>,
    /// Instances: name, and the name of the block.
    pub(crate) instances: Vec<(String, String)>,
    pub(crate) topology: Vec<Node>,
}

pub(crate) fn parse(tokens: &[(Token, Place)], origin: &Place) -> Result<Document, SpecError> {
    let mut parser = Parser { tokens, at: 0, depth: 0, ranged: 0, origin };
    let mut document = Document::default();
    while let Some((token, _)) = parser.tokens.get(parser.at) {
        match token {
            Token::Word(word) if word == "instantiate" => parser.instantiate(&mut document)?,
            Token::Word(word) if word == "topology" => {
                parser.at += 1;
                document.topology.push(parser.node()?);
            }
            Token::Word(_) => document.blocks.push(parser.block()?),
            // Statements need no separator; a comma or semicolon is accepted.
            Token::Mark(',' | ';') => parser.at += 1,
            _ => return Err(parser.wrong("a block, `instantiate` or `topology`")),
        }
    }
    Ok(document)
}

struct Parser<'a> {
    tokens: &'a [(Token, Place)],
    at: usize,
    depth: usize,
    ranged: usize,
    origin: &'a Place,
}

impl Parser<'_> {
    fn place(&self) -> Place {
        self.tokens
            .get(self.at)
            .or_else(|| self.tokens.last())
            .map_or(self.origin, |(_, place)| place)
            .clone()
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    fn wrong(&self, wanted: &str) -> SpecError {
        let met = self.token(0).map_or("the end of the file".to_string(), Token::show);
        self.place().error("", format!("{met} where {wanted} should stand"))
    }

    fn is_mark(&self, ahead: usize, mark: char) -> bool {
        self.token(ahead) == Some(&Token::Mark(mark))
    }

    fn mark(&mut self, mark: char) -> Result<(), SpecError> {
        if !self.is_mark(0, mark) {
            return Err(self.wrong(&format!("`{mark}`")));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, wanted: &str) -> Result<String, SpecError> {
        let word = match self.token(0) {
            Some(Token::Word(word)) => word.clone(),
            Some(Token::Int(number)) => number.to_string(),
            _ => return Err(self.wrong(wanted)),
        };
        self.at += 1;
        Ok(word)
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, SpecError>) -> Result<T, SpecError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.place().error("", format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let result = inner(self)?;
        self.depth -= 1;
        Ok(result)
    }

    /// `type { … }` or `type NAME { … }`.
    fn block(&mut self) -> Result<Block, SpecError> {
        let place = self.place();
        let kind = self.word("the type of a block")?;
        let name = if self.is_mark(0, '{') { None } else { Some(self.word("a block's name or `{`")?) };
        self.mark('{')?;
        let params = self.nested(Self::params)?;
        Ok(Block { kind, name, params, place })
    }

    /// `key = value, … }`, with or without a last comma.
    fn params(&mut self) -> Result<Vec<Param>, SpecError> {
        let mut params = Vec::new();
        while !self.is_mark(0, '}') {
            let place = self.place();
            let keys = self.keys()?;
            self.mark('=')?;
            let value = Rc::new(self.value()?);
            for key in keys {
                params.push(Param { key, value: value.clone(), place: place.clone() });
            }
            if !self.is_mark(0, '}') {
                self.mark(',')?;
            }
        }
        self.mark('}')?;
        Ok(params)
    }

    /// The words before `=`, or a list of keys that share a value.
    fn keys(&mut self) -> Result<Vec<String>, SpecError> {
        if self.is_mark(0, '[') {
            let place = self.place();
            let key = |item: Value| item.word().map(str::to_string);
            let keys: Option<Vec<String>> = self.list()?.into_iter().map(key).collect();
            return keys.ok_or_else(|| place.error("", "a list of keys holds words only"));
        }
        let mut key = self.word("a key")?;
        while !self.is_mark(0, '=') {
            key.push(' ');
            key.push_str(&self.word("`=`")?);
        }
        Ok(vec![key])
    }

    fn value(&mut self) -> Result<Value, SpecError> {
        let number = match self.token(0) {
            Some(Token::Int(number)) => Some(Value::Int(*number)),
            Some(Token::Float(number)) => Some(Value::Float(*number)),
            _ => None,
        };
        if let Some(number) = number {
            self.at += 1;
            return Ok(number);
        }
        match self.token(0) {
            Some(Token::Mark('[')) => Ok(Value::List(self.list()?)),
            Some(Token::Word(_)) => {
                let named =
                    matches!(self.token(1), Some(Token::Word(_) | Token::Int(_))) && self.is_mark(2, '{');
                if named || self.is_mark(1, '{') {
                    return Ok(Value::Block(self.block()?));
                }
                Ok(Value::Word(self.word("a value")?))
            }
            _ => Err(self.wrong("a value")),
        }
    }

    /// `[ value, … ]`, in which `disk0 .. disk7` expands to all names in between.
    fn list(&mut self) -> Result<Vec<Value>, SpecError> {
        self.items(|parser, items| {
            if parser.token(1) == Some(&Token::Range) {
                return parser.range(items);
            }
            items.push(parser.value()?);
            Ok(())
        })
    }

    /// `[ item, … ]`, each item parsed by `item`.
    fn items<T>(
        &mut self,
        item: fn(&mut Self, &mut Vec<T>) -> Result<(), SpecError>,
    ) -> Result<Vec<T>, SpecError> {
        self.mark('[')?;
        self.nested(|parser| {
            let mut items = Vec::new();
            while !parser.is_mark(0, ']') {
                item(parser, &mut items)?;
                if !parser.is_mark(0, ']') {
                    parser.mark(',')?;
                }
            }
            parser.mark(']')?;
            Ok(items)
        })
    }

    fn range(&mut self, items: &mut Vec<Value>) -> Result<(), SpecError> {
        let place = self.place();
        let first = self.word("the first name of a range")?;
        self.at += 1;
        let last = self.word("the last name of a range")?;
        let bad =
            || place.error("", format!("`{first} .. {last}` is no range of names such as `disk0 .. disk7`"));
        let (stem, from) = numbered(&first).ok_or_else(bad)?;
        let (end_stem, to) = numbered(&last).ok_or_else(bad)?;
        if stem != end_stem || to < from {
            return Err(bad());
        }
        self.ranged = self.ranged.saturating_add((to - from) as usize);
        if self.ranged > RANGE_MAX {
            return Err(place.error("", format!("ranges of more than {RANGE_MAX} names")));
        }
        items.extend((from..=to).map(|number| Value::Word(format!("{stem}{number}"))));
        Ok(())
    }

    /// `instantiate [ names ] as NAME`.
    fn instantiate(&mut self, document: &mut Document) -> Result<(), SpecError> {
        self.at += 1;
        let place = self.place();
        let names = self.list()?;
        if self.word("`as`")? != "as" {
            self.at -= 1;
            return Err(self.wrong("`as`"));
        }
        let kind = self.word("the name of a block")?;
        for name in names {
            let Value::Word(name) = name else {
                return Err(place.error("instantiate", "the list holds names only"));
            };
            document.instances.push((name, kind.clone()));
        }
        Ok(())
    }

    /// `type NAME [ nodes ]`.
    fn node(&mut self) -> Result<Node, SpecError> {
        // The type is the same as in the component's block.
        self.word("the type of a component")?;
        let name = self.word("the name of a component")?;
        let below = self.items(|parser, below| {
            below.push(parser.node()?);
            Ok(())
        })?;
        Ok(Node { name, below })
    }
}

/// Splits `disk12` into `disk` and 12.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name[stem.len()..].parse().ok().map(|number| (stem, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::Lexer;

    fn document(text: &str) -> Result<Document, SpecError> {
        let mut read = |name: &str| Err(format!("no {name}"));
        let mut lexer = Lexer::new("t", &mut read);
        lexer.run(text, "t", 0)?;
        parse(&lexer.tokens, &Place { file: "t".into(), line: 1 })
    }

    #[test]
    fn every_form_of_the_language_is_parsed() {
        let text = "disksim_bus BUS1 { Read block transfer time = 0.5, # half\n Print stats = 1, }\n\
                    instantiate [ bus0 , disk8 .. disk11 ] as BUS1\n\
                    topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_disk disk8 [], disksim_disk disk9 [] ] ]\n\
                    a B { x = [ 1, [ 2.5, w ], c { k = v }, d E { } ], [ p, q ] = 7 }";
        let met = document(text).expect("this is the language");
        assert_eq!(met.blocks[0].params[0].key, "Read block transfer time");
        assert_eq!(*met.blocks[0].params[0].value, Value::Float(0.5));
        let names: Vec<&str> = met.instances.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["bus0", "disk8", "disk9", "disk10", "disk11"]);
        assert_eq!(met.topology[0].below[0].below[1].name, "disk9");
        let keys: Vec<&str> = met.blocks[1].params.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, ["x", "p", "q"]);
        let Value::List(items) = &*met.blocks[1].params[0].value else { panic!("x is a list") };
        assert!(matches!(&items[3], Value::Block(Block { name: Some(name), .. }) if name == "E"));
    }

    #[test]
    fn every_broken_file_is_rejected_with_its_line() {
        for (text, line) in [
            ("a B {\n x 1 }", 2),
            ("a B {\n x = }", 2),
            ("a B {\n x = 1", 2),
            ("a", 1),
            ("=", 1),
            ("a B { x = 1\n y = 2 }", 2),
            ("instantiate [ a0 .. b3 ] as X", 1),
            ("instantiate [ a0 .. a99999999 ] as X", 1),
            ("instantiate [ a ] like X", 1),
            ("topology a [ ]", 1),
        ] {
            let error = document(text).expect_err(text);
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }

    #[test]
    fn deep_nesting_is_rejected_without_stack_overflow() {
        for open in ["[", "a { k = ", "t n [ "] {
            let start = if open.starts_with('t') { "topology " } else { "a B { k = " };
            let error = document(&format!("{start}{}", open.repeat(100_000))).expect_err("too deep");
            assert!(error.message.contains("nested deeper"), "{error}");
        }
    }
}
