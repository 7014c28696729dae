//! What operators make of numbers, and which of them work in double precision.

use super::Reader;
use super::number::{Base, Constant, Typed, UNKNOWN, Value, Width};
use crate::parse::cuda::expr::{Binary, Unary};

impl Reader<'_, '_> {
    pub(super) fn binary(&mut self, op: Binary, left: Value, right: Value) -> Value {
        match op {
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide => self.arithmetic(op, left, right),
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::Greater
            | Binary::GreaterEqual => {
                let varies = left.varies() || right.varies();
                self.compared(left, right);
                Value::typed(Base::Other, varies)
            }
            Binary::Comma => right,
            Binary::LogicalAnd | Binary::LogicalOr => Value::typed(Base::Other, left.varies() || right.varies()),
            Binary::Remainder
            | Binary::ShiftLeft
            | Binary::ShiftRight
            | Binary::And
            | Binary::Or
            | Binary::ExclusiveOr => {
                let varies = left.varies() || right.varies();
                let whole = |value: &Value| match value {
                    Value::Constant(one) => one.width == Width::Whole,
                    other => other.base() == Some(Base::Whole),
                };
                let base = if whole(&left) && whole(&right) { Base::Whole } else { Base::Other };
                Value::typed(base, varies)
            }
        }
    }

    fn arithmetic(&mut self, op: Binary, left: Value, right: Value) -> Value {
        let unknown = Value::typed(Base::Other, left.varies() || right.varies());
        let is_divided_by_one =
            matches!((&right, op), (Value::Constant(one), Binary::Divide) if one.value.abs() == 1.0);
        match (left, right) {
            (Value::Constant(one), Value::Constant(other)) => one.with(op, other).map_or(UNKNOWN, Value::Constant),
            // `p + 1` is the same pointer.
            (Value::Typed(one), _) | (_, Value::Typed(one)) if one.steps > 0 => Value::Typed(one),
            (Value::Typed(one), Value::Typed(other)) => {
                let base = match (one.base, other.base) {
                    (Base::Float, Base::Float | Base::Whole) | (Base::Whole, Base::Float) => Base::Float,
                    (Base::Whole, Base::Whole) => Base::Whole,
                    _ => Base::Other,
                };
                Value::typed(base, one.varies || other.varies)
            }
            (Value::Typed(one), Value::Constant(number)) | (Value::Constant(number), Value::Typed(one)) => {
                self.with_constant(op, one, number, is_divided_by_one)
            }
            (Value::Once(literals), Value::Constant(one)) | (Value::Constant(one), Value::Once(literals))
                if one.is_neutral(op) || is_divided_by_one =>
            {
                Value::Once(literals)
            }
            (Value::Typed(one), _) | (_, Value::Typed(one))
                if !(one.varies && matches!(one.base, Base::Float | Base::Whole)) =>
            {
                unknown
            }
            (Value::Mixed(mut literals), Value::Constant(one)) | (Value::Constant(one), Value::Mixed(mut literals)) => {
                literals.extend(one.literals);
                Value::Mixed(literals)
            }
            (Value::Mixed(mut literals), Value::Mixed(others)) => {
                literals.extend(others);
                Value::Mixed(literals)
            }
            (Value::Mixed(literals), Value::Typed(one)) | (Value::Typed(one), Value::Mixed(literals))
                if one.base == Base::Whole =>
            {
                Value::Mixed(literals)
            }
            // From here on a part is of double precision, or made of `float` and literals in several steps.
            (one, other) => {
                for value in [one, other] {
                    if !matches!(&value, Value::Constant(number) if number.is_neutral(op)) {
                        self.counted(value);
                    }
                }
                Value::Double
            }
        }
    }

    fn with_constant(&mut self, op: Binary, one: Typed, number: Constant, is_divided_by_one: bool) -> Value {
        let unknown = Value::typed(Base::Other, one.varies);
        match (one.base, number.width) {
            (Base::Float, Width::Whole | Width::Single) => return Value::Typed(one),
            (Base::Whole, Width::Whole) => return Value::Typed(one),
            (Base::Whole, Width::Single) => return Value::typed(Base::Float, one.varies),
            (Base::Float | Base::Whole, Width::Double) if one.varies => {}
            _ => return unknown,
        }
        if number.is_neutral(op) || is_divided_by_one {
            // It is the other operand or a 0, and no operation.
            return unknown;
        }
        match one.base {
            Base::Whole => Value::Mixed(number.literals),
            _ if number.is_single() => Value::Once(number.literals),
            _ => {
                self.note(number.literals);
                Value::Double
            }
        }
    }

    /// A value takes part in an operation of double precision.
    pub(super) fn counted(&mut self, value: Value) {
        match value {
            Value::Constant(one) => self.note(one.literals),
            Value::Once(literals) | Value::Mixed(literals) => self.note(literals),
            Value::Typed(_) | Value::Double => {}
        }
    }

    fn compared(&mut self, left: Value, right: Value) {
        let is_known = |value: &Value| match value {
            Value::Typed(one) => one.steps == 0 && one.varies && matches!(one.base, Base::Float | Base::Whole),
            _ => true,
        };
        if !is_known(&left) || !is_known(&right) {
            return;
        }
        let is_double = match (&left, &right) {
            (Value::Constant(one), other) | (other, Value::Constant(one)) => {
                one.width == Width::Double && !one.is_single() && other.is_float_that_varies()
                    || matches!(other, Value::Once(_) | Value::Double)
            }
            (Value::Mixed(_), other) | (other, Value::Mixed(_)) => {
                other.is_float_that_varies() || matches!(other, Value::Once(_) | Value::Double)
            }
            (Value::Typed(_), Value::Typed(_)) => false,
            _ => true,
        };
        if !is_double {
            return;
        }
        for value in [left, right] {
            // One that a `float` holds is no reason for a comparison of double precision.
            if !matches!(&value, Value::Constant(number) if number.is_single()) {
                self.counted(value);
            }
        }
    }
}

/// What an array or a pointer leads to.
pub(super) fn stepped(value: &Value) -> Value {
    match value {
        Value::Typed(typed) if typed.steps > 0 => Value::Typed(Typed { steps: typed.steps - 1, ..*typed }),
        other => Value::typed(Base::Other, other.varies()),
    }
}

pub(super) fn unary(op: Unary, value: Value) -> Value {
    match (op, value) {
        (Unary::Dereference, value) => stepped(&value),
        (Unary::Minus, Value::Constant(one)) => Value::Constant(Constant { value: -one.value, ..one }),
        (Unary::Plus | Unary::Minus | Unary::Increment | Unary::Decrement, value) => value,
        (_, value) => Value::typed(Base::Other, value.varies()),
    }
}

/// What is chosen is of double precision where a part was computed so. Else compilers may do without.
pub(super) fn choice(yes: &Value, no: &Value) -> Value {
    let is_float = |value: &Value| match value {
        Value::Constant(one) => one.width == Width::Single,
        other => other.base() == Some(Base::Float),
    };
    match (yes, no) {
        (one, other) if is_float(one) && is_float(other) => Value::typed(Base::Float, one.varies() || other.varies()),
        (Value::Double, Value::Double) => Value::Double,
        _ => Value::typed(Base::Other, yes.varies() || no.varies()),
    }
}
