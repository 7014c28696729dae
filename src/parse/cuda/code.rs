//! Tokens with their brackets: directives and dead code taken out, each bracket with its partner and what it stands in.
//!
//! Both branches of an `#if` may open or close the same brackets. Each begins with what was open before the `#if`, so that
//! one of them counts. What is open is kept as a chain of brackets, each with the one around it: to go back to an earlier
//! state costs nothing, however many there are.

use super::conditions::{Conditions, Reader};
use super::lexer::{Kind, Token, tokens};

/// No token: where a bracket has no partner, or stands in none.
pub(super) const NONE: u32 = u32::MAX;

/// How many brackets of two branches are compared, at most, where both leave some open.
const MOST_LEFT_OPEN: usize = 16;

/// Tokens between two angles, at most, where they are looked for backwards.
const LONGEST_ANGLES: usize = 500;

/// A text, or the body of a macro, as tokens. It is made to be read again and again, so that its room is reused.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Without directives, and without what a condition leaves out that surely does not hold.
    pub tokens: Vec<Token>,
    /// Directives that count, other than those of conditions.
    pub directives: Vec<Directive>,
    partner: Vec<u32>,
    outer: Vec<u32>,
    /// Of an open bracket: the nearest brace around it.
    brace: Vec<u32>,
    regions: Vec<Region>,
    /// From which token on which region goes on.
    marks: Vec<(u32, u32)>,
}

/// A directive that is no condition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directive {
    /// It.
    pub token: Token,
    /// The token behind it.
    pub before: u32,
    /// The branch of an `#if` that it stands in, which may have no token.
    pub region: u32,
}

/// The tokens of a branch of an `#if`: nested, so that one lies within another or apart from it.
#[derive(Debug, Clone, Copy)]
struct Region {
    start: u32,
    end: u32,
    /// Whether a compiler of device code reads it, as far as is known.
    is_for_device: bool,
}

/// An `#if` that is open.
struct Condition {
    /// What was open at its beginning.
    top: u32,
    /// The region around it.
    region: u32,
    /// How many tokens stood before it.
    start: u32,
    /// What the last branch that counts left open.
    left: Option<u32>,
    /// The rest of its branches is dead.
    is_met: bool,
    /// The rest of its branches is dead for a compiler of device code.
    is_met_on_device: bool,
}

impl Code {
    /// Reads `text[from..to]`.
    pub(super) fn read(&mut self, text: &[u8], from: usize, to: usize, conditions: Conditions) {
        self.tokens.clear();
        tokens(text, from, to, &mut self.tokens);
        self.partner.clear();
        self.outer.clear();
        self.brace.clear();
        self.directives.clear();
        self.regions.clear();
        self.regions.push(Region { start: 0, end: NONE, is_for_device: true });
        self.marks.clear();
        self.marks.push((0, 0));
        let mut pairing = Pairing {
            code: self,
            top: NONE,
            region: 0,
            dead: 0,
            known: conditions,
            conditions: Vec::new(),
            same: Vec::new(),
        };
        pairing.run(text);
    }

    /// The kind of the token at `at`; past the end, one that nothing asks for.
    #[must_use]
    pub(super) fn kind(&self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::Other, |token| token.kind)
    }

    /// The text of the token at `at`.
    #[must_use]
    pub(super) fn text<'t>(&self, at: usize, text: &'t [u8]) -> &'t [u8] {
        self.tokens.get(at).map_or(&[], |token| text.get(token.start as usize..token.end as usize).unwrap_or_default())
    }

    /// The bracket that the one at `at` is closed by, or opened by.
    #[must_use]
    pub(super) fn partner(&self, at: usize) -> Option<usize> {
        self.partner.get(at).filter(|partner| **partner != NONE).map(|partner| *partner as usize)
    }

    /// The bracket that is open around the token at `at`; around a bracket that closes, the one around its pair.
    #[must_use]
    pub(super) fn outer(&self, at: usize) -> Option<usize> {
        self.outer.get(at).filter(|outer| **outer != NONE).map(|outer| *outer as usize)
    }

    /// The place behind what opens at `at`: behind its partner, or where that is missing, behind itself.
    #[must_use]
    pub(super) fn behind(&self, at: usize) -> usize {
        match self.partner(at) {
            Some(partner) if partner > at => partner + 1,
            _ => at + 1,
        }
    }

    /// Whether what stands at `at` counts wherever `other` does, as far as `#if`s tell.
    #[must_use]
    pub(super) fn counts_with(&self, at: usize, other: usize) -> bool {
        self.is_within(other, self.region(at))
    }

    /// Whether the token `at` stands in this branch of an `#if`.
    #[must_use]
    pub(super) fn is_within(&self, at: usize, region: u32) -> bool {
        let region = self.regions[region as usize];
        (region.start as usize..region.end as usize).contains(&at)
    }

    /// Whether a compiler of device code reads what stands at `at`, as far as `#if`s tell.
    #[must_use]
    pub(super) fn is_for_device(&self, at: usize) -> bool {
        self.regions[self.region(at) as usize].is_for_device
    }

    /// The branch of an `#if` that `at` stands in.
    #[must_use]
    pub(super) fn region(&self, at: usize) -> u32 {
        let behind = self.marks.partition_point(|(start, _)| *start as usize <= at);
        behind.checked_sub(1).map_or(0, |mark| self.marks[mark].1)
    }

    /// The `>` that closes the list which `<` at `at` opens, if it is one: nothing that ends a statement stands between.
    #[must_use]
    pub(super) fn close_angle(&self, at: usize, end: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut here = at;
        while here < end {
            match self.kind(here) {
                Kind::Less => depth += 1,
                Kind::Greater if depth == 1 => return Some(here),
                Kind::Greater => depth -= 1,
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => {
                    here = self.partner(here).filter(|partner| *partner > here)?;
                }
                Kind::Semicolon | Kind::ParenClose | Kind::BracketClose | Kind::BraceClose | Kind::Launch => {
                    return None;
                }
                Kind::Other if here >= self.tokens.len() => return None,
                _ => {}
            }
            here += 1;
        }
        None
    }

    /// The `<` that opens the list which `>` at `at` closes, if it is one.
    #[must_use]
    pub(super) fn open_angle(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut here = at;
        for _ in 0..LONGEST_ANGLES {
            match self.kind(here) {
                Kind::Greater => depth += 1,
                Kind::Less if depth == 1 => return Some(here),
                Kind::Less => depth -= 1,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => {
                    here = self.partner(here).filter(|partner| *partner < here)?;
                }
                Kind::Semicolon | Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen | Kind::Launch => return None,
                _ => {}
            }
            here = here.checked_sub(1)?;
        }
        None
    }
}

/// What is known while brackets are paired.
struct Pairing<'c> {
    code: &'c mut Code,
    /// The innermost bracket that is open.
    top: u32,
    region: u32,
    /// How many `#if`s deep the text is dead; 0 where it counts.
    dead: usize,
    /// What is known of conditions.
    known: Conditions,
    conditions: Vec<Condition>,
    /// Brackets of one branch that are closed by what closes one of another branch.
    same: Vec<(u32, u32)>,
}

impl Pairing<'_> {
    fn run(&mut self, text: &[u8]) {
        let mut kept = 0;
        for at in 0..self.code.tokens.len() {
            let token = self.code.tokens[at];
            if token.kind == Kind::Directive {
                self.directive(token, text, kept as u32);
                continue;
            }
            if self.dead > 0 {
                continue;
            }
            self.code.tokens[kept] = token;
            self.bracket(token.kind, kept as u32);
            kept += 1;
        }
        self.code.tokens.truncate(kept);
        for (one, other) in self.same.drain(..).rev() {
            if self.code.partner[one as usize] == NONE {
                self.code.partner[one as usize] = self.code.partner[other as usize];
            }
        }
    }

    fn bracket(&mut self, kind: Kind, at: u32) {
        let code = &mut *self.code;
        code.outer.push(self.top);
        code.partner.push(NONE);
        code.brace.push(NONE);
        match kind {
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => {
                if self.top != NONE {
                    let is_brace = code.tokens[self.top as usize].kind == Kind::BraceOpen;
                    code.brace[at as usize] = if is_brace { self.top } else { code.brace[self.top as usize] };
                }
                self.top = at;
            }
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => self.close(kind, at),
            _ => {}
        }
    }

    /// A brace closes what was left open within it; another bracket closes nothing beyond a brace.
    fn close(&mut self, kind: Kind, at: u32) {
        const NEAR: usize = 8;
        let code = &mut *self.code;
        let opens = match kind {
            Kind::ParenClose => Kind::ParenOpen,
            Kind::BracketClose => Kind::BracketOpen,
            _ => Kind::BraceOpen,
        };
        let kind_of = |at: u32| code.tokens[at as usize].kind;
        let mut open = self.top;
        if kind == Kind::BraceClose && open != NONE && kind_of(open) != Kind::BraceOpen {
            open = code.brace[open as usize];
        }
        for _ in 0..NEAR {
            if open == NONE || kind_of(open) == opens {
                break;
            }
            open = if kind_of(open) == Kind::BraceOpen { NONE } else { code.outer[open as usize] };
        }
        if open == NONE || kind_of(open) != opens {
            return;
        }
        code.partner[open as usize] = at;
        code.partner[at as usize] = open;
        self.top = code.outer[open as usize];
        code.outer[at as usize] = self.top;
    }

    fn directive(&mut self, token: Token, text: &[u8], before: u32) {
        let own = token.of(text);
        let (name, rest) = name_and_rest(own);
        match name {
            b"if" | b"ifdef" | b"ifndef" if self.dead > 0 => self.dead += 1,
            b"if" | b"ifdef" | b"ifndef" => {
                let says = self.known.says(own, Reader::Any);
                let on_device = self.known.says(own, Reader::Device);
                let (top, region) = (self.top, self.region);
                let (is_met, is_met_on_device) = (says == Some(true), on_device == Some(true));
                self.conditions.push(Condition { top, region, start: before, left: None, is_met, is_met_on_device });
                self.dead = usize::from(says == Some(false));
                self.open_region(before, on_device != Some(false));
            }
            b"else" | b"elif" | b"elifdef" | b"elifndef" if self.dead <= 1 => {
                let says = self.known.says(own, Reader::Any);
                let on_device = self.known.says(own, Reader::Device);
                let Some(condition) = self.conditions.last_mut() else { return };
                if self.dead == 0 {
                    condition.left = Some(self.top);
                }
                self.top = condition.top;
                self.dead = usize::from(condition.is_met || says == Some(false));
                let is_for_device = !condition.is_met_on_device && on_device != Some(false);
                condition.is_met |= says == Some(true);
                condition.is_met_on_device |= on_device == Some(true);
                let around = condition.region;
                self.close_region(before, around);
                self.open_region(before, is_for_device);
            }
            b"endif" if self.dead > 1 => self.dead -= 1,
            b"endif" => {
                let Some(condition) = self.conditions.pop() else { return };
                self.close_region(before, condition.region);
                if std::mem::take(&mut self.dead) == 1 {
                    self.top = condition.left.unwrap_or(condition.top);
                } else if let Some(left) = condition.left {
                    self.merge(left, condition.start);
                }
            }
            _ if self.dead > 0 => {}
            _ => {
                if name == b"define" {
                    self.known.define(rest);
                }
                self.code.directives.push(Directive { token, before, region: self.region });
            }
        }
    }

    /// After an `#endif`: of what two branches left open, the deeper one stays, and the other's are closed with it.
    fn merge(&mut self, left: u32, start: u32) {
        let is_own = |at: u32| at != NONE && at >= start;
        let depth = |mut at: u32| {
            let mut depth = 0;
            while is_own(at) && depth < MOST_LEFT_OPEN {
                depth += 1;
                at = self.code.outer[at as usize];
            }
            depth
        };
        let (mut one, mut other) = (left, self.top);
        if depth(left) > depth(self.top) {
            self.top = left;
            (one, other) = (other, one);
        }
        for _ in 0..MOST_LEFT_OPEN {
            if !is_own(one) || !is_own(other) {
                return;
            }
            if self.code.kind(one as usize) == self.code.kind(other as usize) && one != other {
                self.same.push((one, other));
            }
            (one, other) = (self.code.outer[one as usize], self.code.outer[other as usize]);
        }
    }

    fn open_region(&mut self, at: u32, is_for_device: bool) {
        let is_for_device = is_for_device && self.code.regions[self.region as usize].is_for_device;
        self.region = self.code.regions.len() as u32;
        self.code.regions.push(Region { start: at, end: NONE, is_for_device });
        self.code.marks.push((at, self.region));
    }

    fn close_region(&mut self, at: u32, around: u32) {
        self.code.regions[self.region as usize].end = at;
        self.region = around;
        self.code.marks.push((at, around));
    }
}

/// The name of a directive, and what stands behind it.
#[must_use]
pub(super) fn name_and_rest(directive: &[u8]) -> (&[u8], &[u8]) {
    let blanks = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = directive.strip_prefix(b"#").unwrap_or(directive);
    let rest = &rest[blanks(rest)..];
    rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        let mut code = Code::default();
        code.read(text.as_bytes(), 0, text.len(), Conditions::default());
        code
    }

    /// The words, each with the text of the bracket around it.
    fn kept(text: &str) -> Vec<&str> {
        let code = code(text);
        code.tokens.iter().map(|token| &text[token.start as usize..token.end as usize]).collect()
    }

    fn pairs(text: &str) -> Vec<Option<usize>> {
        let code = code(text);
        (0..code.tokens.len()).map(|at| code.partner(at)).collect()
    }

    #[test]
    fn brackets_find_their_partners() {
        assert_eq!(pairs("f(a[1])"), [None, Some(6), None, Some(5), None, Some(3), Some(1)]);
        let code = code("{ ( x ) y }");
        assert_eq!((code.outer(2), code.outer(4), code.outer(0)), (Some(1), Some(0), None));
        assert_eq!(code.outer(3), Some(0));
    }

    #[test]
    fn dead_code_is_left_out() {
        assert_eq!(kept("a\n#if 0\nb {\n#if X\nc\n#else\nd\n#endif\n#else\ne\n#endif\nf"), ["a", "e", "f"]);
        assert_eq!(kept("#if 1 // on\na\n#else\nb {\n#endif\nc"), ["a", "c"]);
        assert_eq!(kept("#if 0\na\n#elif X\nb\n#endif"), ["b"]);
        assert_eq!(kept("#if 1\na\n#elif X\nb\n#else\nc\n#endif"), ["a"]);
    }

    #[test]
    fn what_is_not_for_cuda_is_left_out() {
        assert_eq!(kept("#ifdef USE_ROCM\na\n#elif X\nb\n#else\nc\n#endif"), ["b", "c"]);
        assert_eq!(kept("#if X\na\n#elif CUDA_VERSION >= 9000\nb\n#else\nc\n#endif"), ["a", "b"]);
        assert_eq!(kept("#define USE_HIP\n#ifdef USE_HIP\na\n#endif"), ["a"]);
        let text = "#if __CUDA_ARCH__ >= 700\na\n#if X\nb\n#endif\n#else\nc\n#if X\nd\n#endif\n#endif\ne";
        let code = code(text);
        assert_eq!([0, 1, 2, 3, 4].map(|at| code.is_for_device(at)), [true, true, false, false, true]);
    }

    #[test]
    fn branches_that_open_the_same_brace_close_it_once() {
        let text = "n {\n#ifdef A\nl(int a) {\n#else\nl() {\n#endif\nx }\n}";
        let code = code(text);
        let opens: Vec<usize> = (0..code.tokens.len()).filter(|at| code.kind(*at) == Kind::BraceOpen).collect();
        let closes: Vec<usize> = (0..code.tokens.len()).filter(|at| code.kind(*at) == Kind::BraceClose).collect();
        assert_eq!(opens.len(), 3);
        assert_eq!(code.partner(opens[0]), Some(closes[1]));
        assert_eq!(code.partner(opens[1]), Some(closes[0]));
        assert_eq!(code.partner(opens[2]), Some(closes[0]));
    }

    #[test]
    fn a_branch_that_opens_more_is_closed_by_a_later_one() {
        let code = code("f {\n#if A\nfor {\n#else\nx;\n#endif\ny\n#if A\n}\n#endif\n}\ng {}");
        let at = code.tokens.len();
        assert_eq!(code.outer(at - 1), None);
        assert_eq!(code.partner(at - 1), Some(at - 2));
        assert_eq!(code.outer(at - 3), None);
    }

    #[test]
    fn what_is_torn_is_paired_as_far_as_it_goes() {
        assert_eq!(pairs("{ ( }"), [Some(2), None, Some(0)]);
        assert_eq!(pairs(") } ]"), [None, None, None]);
        assert_eq!(pairs("( { ) }"), [None, Some(3), None, Some(1)]);
        assert_eq!(pairs("#endif\n#else\n{"), [None]);
    }

    #[test]
    fn regions_tell_what_counts_together() {
        let code = code("a\n#if X\nb\n#if Y\nc\n#endif\n#else\nd\n#endif\ne");
        assert!(code.counts_with(0, 1) && code.counts_with(1, 2) && code.counts_with(4, 2));
        assert!(
            !code.counts_with(1, 0) && !code.counts_with(2, 1) && !code.counts_with(1, 3) && !code.counts_with(3, 4)
        );
    }

    #[test]
    fn a_list_in_angles_is_told_from_a_comparison() {
        let code = code("A<B<(1 > 2)>> x; a < b; c > d");
        assert_eq!(code.close_angle(1, code.tokens.len()), Some(10));
        assert_eq!(code.open_angle(10), Some(1));
        let less = 14;
        assert_eq!(code.kind(less), Kind::Less);
        assert_eq!(code.close_angle(less, code.tokens.len()), None);
    }
}
