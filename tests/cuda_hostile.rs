//! Sources that are torn, or no sources at all, are read to their end, in a time that grows as they do.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use warplint::parse::cuda::{Aliases, Scanner, scan};

// What is laid before a scanner by fuzzing is laid before it here as well.
#[path = "../fuzz/targets.rs"]
#[allow(dead_code)]
mod targets;

/// Every construct that the scanner knows, once.
const EVERYTHING: &str = r#"
#include <cuda_runtime.h>
#ifndef BLOCK
#define BLOCK 128
#endif
#define MY_KERNEL __global__ static
#define RUN(k, n) do { dim3 b(BLOCK); k<<<(n + 1) / 2, b>>>(n); } while (0)
namespace a { namespace {
template <typename T, int N> struct Traits { static constexpr int kThreads = 64; enum { A = 3, B = A * 2, C }; };
template <int N> __global__ void __launch_bounds__(BLOCK, 2) k(float (&x)[N], const __grid_constant__ int n) {
    __shared__ float tile[16][17], other[BLOCK];
    extern __shared__ __align__(16) unsigned char sm[];
    float r[4] = {0};
#pragma unroll
    for (int i = 0; i < 4; ++i) { r[i] += tile[i][threadIdx.x]; }
    if (threadIdx.x % 2 == 0) r[n] = 1'024.0e-3f;
}
MY_KERNEL void h(int* p) { asm volatile("bar.sync %0;" :: "r"(1)); }
} }
__global__ void
#ifdef A
l(int a) {
#else
l() {
#endif
}
#if 0
z<<<1, 1>>>();
#endif
extern "C" void launch(int n, cudaStream_t s) {
    const int t = n > 4 ? BLOCK : 2 * BLOCK;
    dim3 grid(ceil_div<int, 4>(n), 1), block {32, 2};
    block.x = 16; if (n) { block.y = 4; }
    auto fn = a::k<4>;
    fn<<<grid, block, 0, s>>>(x, n);
    DISPATCH(t, [&](auto c) { a::k<c()><<<grid, dim3(8, 8)>>>(x, n); });
    cudaLaunchConfig_t cfg = {}; cfg.gridDim = grid; cfg.blockDim.x = 64; cudaLaunchKernelEx(&cfg, a::k<4>, x, n);
    cudaLaunchKernel((void*)h, grid, block, args, sizeof(float) * 32, s);
    const char* c = R"x(__global__ <<<)x"; // <<<1, 2>>>
}
"#;

/// Sources of the fixtures, and one that holds everything.
fn sources() -> Vec<Vec<u8>> {
    let mut found = vec![EVERYTHING.as_bytes().to_vec()];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for entry in walkdir::WalkDir::new(fixtures).sort_by_file_name().into_iter().filter_map(Result::ok) {
        if entry.path().extension().is_some_and(|end| end == "cu" || end == "cuh") {
            found.push(fs::read(entry.path()).expect("a fixture"));
        }
    }
    found
}

#[test]
fn torn_sources_are_read_to_their_end() {
    for text in sources() {
        for part in 0..=50 {
            let at = text.len() * part / 50;
            targets::cuda(&text[..at]);
            targets::cuda(&text[at..]);
        }
    }
}

#[test]
fn what_everything_holds_is_found() {
    let file = scan(EVERYTHING.as_bytes(), &Aliases::default());
    assert_eq!(file.constant(b"BLOCK"), Some(128));
    let mut scanner = Scanner::default();
    scanner.scan(EVERYTHING.as_bytes(), &Aliases::default());
    let names: Vec<&str> = scanner.devices().map(|device| &EVERYTHING[device.name]).collect();
    assert_eq!(names, ["k", "h", "l"]);
}

/// Seconds that a text takes, at the best of three times.
fn time(text: &[u8]) -> Duration {
    let mut scanner = Scanner::default();
    let mut once = || {
        let start = Instant::now();
        scanner.scan(text, &Aliases::default());
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

/// Pieces that are repeated: each has once been thought of as what takes long.
const REPEATED: [&str; 45] = [
    "(",
    "{",
    "[",
    "<",
    "a<",
    "<<<",
    "a<<<",
    "k<<<1,",
    "k<<<1, 2>>>(x);",
    "#if X\n",
    "#if X\n{\n#else\n(\n#endif\n",
    "#if X\n{\n",
    "#else\n",
    "} ",
    ") ",
    "__global__ ",
    "__global__ a > ",
    "__global__ void k(",
    "__global__ void k() {",
    "template <int a = __global__ ",
    "int a = ",
    "int t; t = ",
    "a = a * a + a; k<<<1, a>>>(); ",
    "dim3 b(b); ",
    "b.x = 4; k<<<1, b>>>(); ",
    "b.x = n; k<<<1, b>>>(); ",
    "const int B = 4; k<<<1, B>>>(n); ",
    "k<<<1 + k<<<1 + ",
    "#define A A A\n",
    "#define A k<<<1, A>>>()\n",
    "enum {",
    "enum { A = A + 1, ",
    "namespace n {",
    "struct s { ",
    "struct s : ",
    "for (int i = 0; ",
    "if (x) ",
    "f(t, ",
    "[&] {",
    "cudaLaunchKernel(",
    "t(t); ",
    "R\"(",
    "/*",
    "__shared__ int a[N]; a[i] = 1; ",
    "else ",
];

#[test]
fn no_repetition_takes_longer_than_linear() {
    for piece in REPEATED {
        let before = "__global__ void k(int n) {} void f(int n) { int t = 4; k<<<1, t>>>(n); int a = 1; dim3 b; ";
        let text = |size: usize| [before.as_bytes(), &piece.as_bytes().repeat(size / piece.len())].concat();
        // Sixteen times the text: what is quadratic takes 256 times as long, however busy the machine is.
        let is_linear = || time(&text(160_000)) <= time(&text(10_000)).max(Duration::from_millis(4)) * 16 * 6;
        assert!((0..5).any(|_| is_linear()), "{piece:?} takes much longer than 16 times as long at 16 times the size");
    }
}

#[test]
fn a_million_brackets_and_conditions_are_read() {
    for piece in ["(", "{", "#if 1\n", "#if X\n", "<", "a<", "<<<", "f(", "{(["] {
        let text = ["__global__ void k() {", &piece.repeat(1_000_000), " k<<<1, 2>>>(); }"].concat();
        let _ = scan(text.as_bytes(), &Aliases::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        targets::cuda(&bytes);
    }

    #[test]
    fn any_pieces_of_sources_are_read(cuts in proptest::collection::vec((0..1500_usize, 0..80_usize), 1..60)) {
        let text = EVERYTHING.as_bytes();
        let pieces = cuts.iter().map(|(at, length)| {
            let at = at % text.len();
            &text[at..(at + length).min(text.len())]
        });
        let bytes: Vec<u8> = pieces.flatten().copied().collect();
        targets::cuda(&bytes);
    }
}
