//! What the parts of an expression are, and what becomes of them.

use super::number::{Base, Typed, UNKNOWN, Value, constant};
use super::operators::{choice, stepped, unary};
use super::{Pass, Reader};
use crate::parse::cuda::expr::{self, Binary, Tree};

impl Reader<'_, '_> {
    pub(super) fn node(&mut self, tree: &Tree, id: expr::Id) -> Value {
        use expr::What;
        let node = tree.get(id);
        let start = node.tokens.0 as usize;
        match node.what {
            What::Number => constant(self.word(start), start).map_or(UNKNOWN, Value::Constant),
            What::Name { arguments: None } if node.tokens.1 - node.tokens.0 == 1 => {
                self.variables.get(self.word(start)).map_or(UNKNOWN, |typed| Value::Typed(*typed))
            }
            What::Member { base, arrow } => self.member(tree, base, arrow, node.tokens.1 as usize - 1),
            What::Index { base, index } => {
                self.node(tree, index);
                let base = self.node(tree, base);
                stepped(&base)
            }
            What::Unary(op, of) | What::Postfix(op, of) => {
                let value = self.node(tree, of);
                unary(op, value)
            }
            What::Binary(op, left, right) => {
                let (left, right) = (self.node(tree, left), self.node(tree, right));
                self.binary(op, left, right)
            }
            What::Assign(op, to, from) => {
                let (place, value) = (self.node(tree, to), self.node(tree, from));
                self.assign(tree, op, to, place, value)
            }
            What::Choice(condition, yes, no) => {
                self.node(tree, condition);
                let (yes, no) = (self.node(tree, yes), self.node(tree, no));
                choice(&yes, &no)
            }
            What::Cast(to, of) => {
                let value = self.node(tree, of);
                let typed = self.type_of(to.0 as usize..to.1 as usize);
                let varies = value.varies();
                self.becomes(typed, value);
                Value::Typed(Typed { varies, ..typed })
            }
            What::Call { callee, arguments } => self.call(tree, callee, tree.list(arguments)),
            What::Construct { arguments, .. } | What::Braces(arguments) => {
                let mut varies = false;
                for one in tree.list(arguments) {
                    varies |= self.node(tree, *one).varies();
                }
                Value::typed(Base::Other, varies)
            }
            What::Name { .. }
            | What::String
            | What::Character
            | What::Launch { .. }
            | What::SizeOf(_)
            | What::Lambda(_)
            | What::Opaque => UNKNOWN,
        }
    }

    fn member(&mut self, tree: &Tree, base: expr::Id, arrow: bool, name: usize) -> Value {
        let of = tree.get(base);
        let is_axis = matches!(self.word(name), b"x" | b"y" | b"z" | b"w");
        if is_axis && of.tokens.1 - of.tokens.0 == 1 {
            match self.word(of.tokens.0 as usize) {
                b"threadIdx" | b"blockIdx" => return Value::typed(Base::Whole, true),
                b"blockDim" | b"gridDim" => return Value::typed(Base::Whole, false),
                _ => {}
            }
        }
        let base = self.node(tree, base);
        let base = if arrow { stepped(&base) } else { base };
        let known = if base.base() == Some(Base::Vector) && is_axis { Base::Float } else { Base::Other };
        Value::typed(known, base.varies())
    }

    fn assign(&mut self, tree: &Tree, op: Option<Binary>, to: expr::Id, place: Value, value: Value) -> Value {
        let varies = value.varies() || op.is_some() && place.varies();
        let Value::Typed(typed) = place else { return UNKNOWN };
        let value = match op {
            Some(op) => self.binary(op, Value::Typed(typed), value),
            None => value,
        };
        self.becomes(typed, value);
        let mut node = tree.get(to);
        let is_whole = matches!(node.what, expr::What::Name { .. });
        while let expr::What::Index { base, .. } = node.what {
            node = tree.get(base);
        }
        if matches!(node.what, expr::What::Name { arguments: None })
            && node.tokens.1 - node.tokens.0 == 1
            && let Some(one) = self.variables.get_mut(self.word(node.tokens.0 as usize))
        {
            // What another element of an array holds is left as it was, and so is what a pointer leads to.
            one.varies = varies || !is_whole && one.varies || is_whole && one.steps > 0;
            if one.varies && self.pass == Pass::First {
                self.carried.insert(self.fold.scopes.code.text(node.tokens.0 as usize, self.fold.scopes.text));
            }
        }
        Value::Typed(Typed { varies, ..typed })
    }
}
