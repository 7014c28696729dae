//! Reads mangled names as far as names of kernels use them, in one pass, without trying what else a name may mean.

/// Deepest nesting that is followed.
const MAX_DEPTH: usize = 64;
/// Deepest nesting of values in values, of functions in functions, of what is declared in them, and of expressions.
const MAX_SAME: usize = 3;

/// The qualified name as `A<…>::f`, of what follows the `_Z`; `None` where it is not understood.
pub(super) fn base(encoding: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(encoding);
    reader.name()?;
    Some(reader.out).filter(|base| !base.is_empty())
}

/// How deep the lists of a mangled name are nested; `None` where it is not whole, or not as compilers write names of
/// kernels. In one pass, so that it can be asked before a demangler is, which tries all that a name may mean: that takes
/// hours over fifty bytes of a broken one.
pub(super) fn nesting(name: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(name.strip_prefix(b"_Z")?);
    reader.name()?;
    reader.parameters()?;
    Some(reader.deepest)
}

/// Reads the grammar of mangled names as far as names of kernels use it. `None` means: not understood.
struct Reader<'a> {
    text: &'a [u8],
    /// Bytes that are read.
    at: usize,
    /// What was read of the name.
    out: Vec<u8>,
    /// The most lists that were open at a time.
    deepest: usize,
}

/// What an `E` ends, within template arguments.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// A list: of arguments, of a pack, of what a function within a name takes.
    List,
    /// The parts of a name, where an `L` only tells how it is linked.
    Name,
    /// A value, after its type: `Li128E`.
    Value,
    /// What a type of functions returns and takes.
    Function,
    /// An expression.
    Expression,
    /// A function that something is declared in.
    Local,
    /// The parameters of a lambda, after which it is numbered: `UlvE0_`.
    Lambda,
}

/// What is open, the innermost last.
struct Stack {
    open: [Open; MAX_DEPTH],
    depth: usize,
}

impl Stack {
    fn of_a_list() -> Stack {
        Stack { open: [Open::List; MAX_DEPTH], depth: 1 }
    }

    fn innermost(&self) -> Option<Open> {
        self.depth.checked_sub(1).map(|at| self.open[at])
    }

    fn push(&mut self, kind: Open) -> Option<()> {
        let many = matches!(kind, Open::Value | Open::Function | Open::Expression | Open::Local);
        if many && self.open[..self.depth].iter().filter(|open| **open == kind).count() == MAX_SAME {
            return None;
        }
        *self.open.get_mut(self.depth)? = kind;
        self.depth += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Reader<'a> {
        Reader { text, at: 0, out: Vec::new(), deepest: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.text.get(self.at + 1).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn eat_two(&mut self, lead: [u8; 2]) -> bool {
        let eaten = self.peek() == Some(lead[0]) && self.peek_second() == Some(lead[1]);
        self.at += if eaten { 2 } else { 0 };
        eaten
    }

    /// Passes over bytes of one kind.
    fn skip(&mut self, is_of_kind: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_of_kind) {
            self.at += 1;
        }
    }

    /// One more part of the name.
    fn say(&mut self, part: &[u8]) {
        if !self.out.is_empty() {
            self.out.extend_from_slice(b"::");
        }
        self.out.extend_from_slice(part);
    }

    /// `N2ns1AIiE1fE`, `8pressureILi128EE`, `St4swap`.
    fn name(&mut self) -> Option<()> {
        if self.eat(b'N') {
            self.skip(|byte| matches!(byte, b'K' | b'V' | b'r'));
            let _ = self.eat(b'R') || self.eat(b'O');
            let mut first = true;
            while !self.eat(b'E') {
                self.part(first)?;
                first = false;
            }
            return (!first).then_some(());
        }
        // `St4swap` is two parts.
        let of_std = self.text[self.at..].starts_with(b"St");
        self.part(true)?;
        if of_std {
            self.part(false)?;
        }
        if self.peek() == Some(b'I') { self.arguments() } else { Some(()) }
    }

    /// One part of a nested name.
    fn part(&mut self, first: bool) -> Option<()> {
        let _ = self.eat(b'L');
        match self.peek()? {
            b'0'..=b'9' => {
                let identifier = self.identifier()?;
                // The name of an anonymous namespace holds a hash that differs from build to build.
                let anonymous = identifier.starts_with(b"_GLOBAL__N_");
                self.say(if anonymous { b"(anonymous namespace)" } else { identifier });
                while self.eat(b'B') {
                    self.identifier()?;
                }
                Some(())
            }
            b'I' if !first => self.arguments(),
            b'S' => {
                let start = self.at;
                self.at += 1;
                self.substitution()?;
                self.say(&self.text[start..self.at]);
                Some(())
            }
            b'C' | b'D' if !first && matches!(self.peek_second(), Some(b'0'..=b'5')) => {
                let start = self.at;
                self.at += 2;
                self.say(&self.text[start..self.at]);
                Some(())
            }
            // Names of operators, but none that hold a type.
            b'a'..=b'z' if self.peek_second().is_some_and(|second| second.is_ascii_alphabetic()) => {
                let operator = &self.text[self.at..self.at + 2];
                if matches!(operator, b"cv" | b"li") {
                    return None;
                }
                self.at += 2;
                self.say(b"operator ");
                self.out.extend_from_slice(operator);
                Some(())
            }
            _ => None,
        }
    }

    fn identifier(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let identifier = self.text.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        (length > 0).then_some(identifier)
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut number = Some(0_usize);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.and_then(|number| number.checked_mul(10)?.checked_add(usize::from(digit - b'0')));
            self.at += 1;
        }
        number.filter(|_| self.at > start)
    }

    /// Template arguments, which are left out: `ILi128E1AIiEE`.
    fn arguments(&mut self) -> Option<()> {
        self.out.extend_from_slice("<…>".as_bytes());
        self.at += 1;
        let mut stack = Stack::of_a_list();
        while stack.depth > 0 {
            self.token(&mut stack)?;
        }
        Some(())
    }

    /// The types of what a function takes, and of what a template of functions returns, to the end of the name.
    fn parameters(&mut self) -> Option<()> {
        let mut stack = Stack::of_a_list();
        while self.at < self.text.len() {
            self.token(&mut stack)?;
            if stack.depth == 0 {
                return None;
            }
        }
        (stack.depth == 1).then_some(())
    }

    /// One piece of a list. Nothing of lists is asked but where they end, so of their grammar only that is followed which
    /// an `E` depends on.
    fn token(&mut self, stack: &mut Stack) -> Option<()> {
        let inner = stack.innermost()?;
        let byte = self.peek()?;
        self.at += 1;
        let opened = match byte {
            b'E' => {
                stack.pop();
                if inner == Open::Lambda {
                    self.sequence()?;
                }
                None
            }
            b'0'..=b'9' => {
                self.at -= 1;
                self.identifier()?;
                None
            }
            b'I' | b'J' => Some(Open::List),
            b'F' => Some(Open::Function),
            b'N' => Some(Open::Name),
            b'L' => self.linkage_or_value(inner),
            b'X' => Some(Open::Expression),
            b'a'..=b'z' if inner == Open::Expression => {
                let operator = [byte, self.peek().filter(u8::is_ascii_lowercase)?];
                self.at += 1;
                match &operator {
                    // A call, and values in braces.
                    b"cl" | b"tl" | b"il" => Some(Open::Expression),
                    // `sr2ns1AIiEE1v`, the `v` of `ns::A<int>`.
                    b"sr" if self.peek().is_some_and(|next| next.is_ascii_digit()) => Some(Open::List),
                    _ => None,
                }
            }
            b'Z' => {
                let _ = self.eat(b'L');
                Some(Open::Local)
            }
            b'U' if self.eat(b'l') => Some(Open::Lambda),
            _ => {
                self.leaf(byte, inner)?;
                None
            }
        };
        match opened {
            Some(kind) => {
                stack.push(kind)?;
                self.deepest = self.deepest.max(stack.depth);
            }
            None if stack.innermost() == Some(Open::Value)
                && !self.is_before_type(byte)
                && self.peek() != Some(b'I') =>
            {
                self.skip(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'n' | b'_'));
                if !self.eat(b'E') {
                    return None;
                }
                stack.pop();
            }
            None => {}
        }
        Some(())
    }

    /// Whether what was read last, which begins with `byte`, stands before a type and is none.
    fn is_before_type(&self, byte: u8) -> bool {
        match byte {
            b'K' | b'P' | b'R' | b'O' | b'V' | b'r' | b'A' | b'M' | b'u' => true,
            b'S' => self.text[..self.at].ends_with(b"St"),
            _ => false,
        }
    }

    /// What an `L` opens: nothing in a name, a function in `L_Z1fiE`, else a value.
    fn linkage_or_value(&mut self, inner: Open) -> Option<Open> {
        if self.eat_two(*b"_Z") {
            let _ = self.eat(b'L');
            return Some(Open::List);
        }
        if inner == Open::Name {
            return None;
        }
        // `Li128E`, as nearly all are.
        if self.peek().is_some_and(|kind| kind.is_ascii_lowercase() && kind != b'u') {
            let start = self.at;
            self.at += 1;
            self.skip(|byte| byte.is_ascii_digit());
            if self.eat(b'E') {
                return None;
            }
            self.at = start;
        }
        Some(Open::Value)
    }

    /// What opens nothing and begins with `byte`, which is read.
    fn leaf(&mut self, byte: u8, inner: Open) -> Option<()> {
        match byte {
            b'S' => {
                self.substitution()?;
                // `St` is no type of its own.
                let of_std = self.text[..self.at].ends_with(b"St");
                (!of_std || self.peek().is_some_and(|next| next.is_ascii_digit())).then_some(())
            }
            b'T' => self.sequence(),
            b'U' if self.eat(b't') => self.sequence(),
            b'A' => {
                let _ = self.number();
                self.eat(b'_').then_some(())
            }
            b'C' | b'D' if inner == Open::Name && matches!(self.peek(), Some(b'0'..=b'5')) => {
                self.at += 1;
                Some(())
            }
            b'D' => self.long_builtin(),
            // One of several entities of one name in a function: `_0`, `__12_`.
            b'_' if self.eat(b'_') => {
                self.number()?;
                self.eat(b'_').then_some(())
            }
            b'_' if self.peek().is_some_and(|next| next.is_ascii_digit()) => {
                self.at += 1;
                Some(())
            }
            // Builtin types, operators, and what stands before a type or a name.
            b'a'..=b'z' | b'K' | b'P' | b'R' | b'O' | b'V' | b'M' | b'Y' | b'B' => Some(()),
            _ => None,
        }
    }

    /// `Dn`, `Dp…`, `Dv4_f`, after the `D`.
    fn long_builtin(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'p' | b'o' | b'n' | b'h' | b'i' | b's' | b'u' | b'a' | b'c' | b'd' | b'e' | b'f' => Some(()),
            b'v' => {
                self.number()?;
                self.eat(b'_').then_some(())
            }
            _ => None,
        }
    }

    /// `S_`, `S1A_`, `St`, `Sa`, after the `S`.
    fn substitution(&mut self) -> Option<()> {
        if matches!(self.peek()?, b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd') {
            self.at += 1;
            return Some(());
        }
        self.sequence()
    }

    /// A number, which may be left out, and `_`.
    fn sequence(&mut self) -> Option<()> {
        self.skip(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        self.eat(b'_').then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_nested_as_deep_as_their_lists_and_broken_ones_are_not() {
        for (name, depth) in [
            ("_Z5scalePf", Some(0)),
            ("_Z1kI1AIiEEvPT_", Some(2)),
            ("_Z1kIXT_EEvv", Some(2)),
            ("_Z1kvvE", None),
            ("_Z1kI1AIiEvv", None),
            ("scale", None),
        ] {
            assert_eq!(nesting(name.as_bytes()), depth, "{name}");
        }
        let values = |count: usize| format!("_Z1kI{}{}Evv", "LSt1aI".repeat(count), "E1E".repeat(count));
        assert!(nesting(values(3).as_bytes()).is_some() && nesting(values(4).as_bytes()).is_none());
    }
}
