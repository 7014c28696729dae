//! What functions of the CUDA math library make of numbers, and which of them work in double precision.

use super::Reader;
use super::number::{Base, UNKNOWN, Value, Width};
use crate::parse::cuda::expr::{self, Binary, Tree};
use crate::parse::cuda::heads::is_upper;

impl Reader<'_, '_> {
    pub(super) fn call(&mut self, tree: &Tree, callee: expr::Id, arguments: &[expr::Id]) -> Value {
        let node = tree.get(callee);
        let is_word = matches!(node.what, expr::What::Name { .. }) && node.tokens.1 - node.tokens.0 == 1;
        let name = if is_word { self.word(node.tokens.0 as usize) } else { b"" };
        // What a macro makes of its arguments is not known, and what is printed is a `double` in any case.
        if is_word && (is_upper(name) || self.macros.has(name) || matches!(name, b"printf" | b"assert")) {
            return UNKNOWN;
        }
        let mut values: Vec<Value> = arguments.iter().map(|one| self.node(tree, *one)).collect();
        let varies = values.iter().any(Value::varies);
        let unknown = Value::typed(Base::Other, varies);
        if is_single_function(name) {
            return Value::typed(Base::Float, varies);
        }
        match (name, values.len()) {
            (b"pow", 2) => {
                let (Some(power), Some(base)) = (values.pop(), values.pop()) else { return unknown };
                self.power(base, power)
            }
            (b"fabs" | b"abs", 1) => match values.pop() {
                Some(Value::Double) => Value::Double,
                Some(value) if value.base() == Some(Base::Float) => value,
                _ => unknown,
            },
            (name, 1) if is_overloaded(name) => match values.pop() {
                Some(Value::Double) => Value::Double,
                Some(value) if value.base() == Some(Base::Float) => value,
                Some(Value::Once(literals)) => {
                    self.note(literals);
                    Value::Double
                }
                _ => unknown,
            },
            _ => unknown,
        }
    }

    fn power(&mut self, base: Value, power: Value) -> Value {
        let unknown = Value::typed(Base::Other, base.varies() || power.varies());
        let is_double = match (&base, &power) {
            (value, Value::Constant(one)) | (Value::Constant(one), value) => {
                let is_trivial = one.is_neutral(Binary::Multiply);
                !is_trivial
                    && (matches!(value, Value::Once(_) | Value::Double)
                        || one.width == Width::Double && value.is_float_that_varies())
            }
            (Value::Once(_) | Value::Double, other) | (other, Value::Once(_) | Value::Double) => {
                other.is_float_that_varies() || matches!(other, Value::Once(_) | Value::Double)
            }
            _ => false,
        };
        if !is_double {
            return unknown;
        }
        self.counted(base);
        self.counted(power);
        Value::Double
    }
}

/// Functions of the CUDA math library that take and give `float`, whatever they are called with.
fn is_single_function(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__").unwrap_or(name);
    let Some(base) = name.strip_suffix(b"f") else { return false };
    is_overloaded(base)
        || matches!(
            base,
            b"fabs"
                | b"pow"
                | b"fmax"
                | b"fmin"
                | b"fma"
                | b"fmod"
                | b"atan2"
                | b"hypot"
                | b"fdivide"
                | b"copysign"
                | b"fdim"
        )
}

/// Functions of one argument that are of single precision for a `float`, and of double precision for a `double`.
fn is_overloaded(name: &[u8]) -> bool {
    matches!(
        name,
        b"sqrt"
            | b"rsqrt"
            | b"cbrt"
            | b"exp"
            | b"exp2"
            | b"expm1"
            | b"log"
            | b"log2"
            | b"log10"
            | b"log1p"
            | b"sin"
            | b"cos"
            | b"tan"
            | b"asin"
            | b"acos"
            | b"atan"
            | b"sinh"
            | b"cosh"
            | b"tanh"
            | b"erf"
            | b"erfc"
            | b"floor"
            | b"ceil"
    )
}
