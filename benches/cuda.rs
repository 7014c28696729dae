//! How fast sources are scanned, in bytes a second: `cargo bench --bench cuda`.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warplint::model::Report;
use warplint::parse::cuda::{Aliases, Gathered, Scanner, gather};

/// A source with kernels, helpers and launches, as long as those of projects are.
fn source(kernels: usize) -> String {
    let mut text =
        String::from("#include <cuda_runtime.h>\n#define BLOCK 256\nconstexpr int kTile = 16;\nnamespace project {\n");
    for at in 0..kernels {
        let parts = [
            format!("// Adds what neighbours hold to every element, {at} of them at a time.\n"),
            format!("template <typename T>\n__device__ inline T add_{at}(T a, T b) {{ return a * T({at}) + b; }}\n"),
            format!("template <typename T>\n__global__ void __launch_bounds__(BLOCK) sum_{at}(T* out, const T* in, int n) {{\n"),
            "    __shared__ T tile[kTile][kTile + 1];\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n".to_owned(),
            "    if (i >= n) return;\n    for (int k = 0; k < kTile; ++k) {\n        tile[k][threadIdx.x % kTile] = in[(i + k) % n];\n    }\n".to_owned(),
            "    __syncthreads();\n    if (threadIdx.x < 32) {\n        out[i] = tile[0][0] + tile[1][1] * 0.5f;\n    }\n}\n".to_owned(),
            format!("void launch_{at}(float* out, const float* in, int n, cudaStream_t stream) {{\n"),
            "    const int threads = 2 * kTile * 8;\n    dim3 grid((n + threads - 1) / threads), block(kTile, kTile);\n".to_owned(),
            format!("    sum_{at}<float><<<grid, threads, 0, stream>>>(out, in, n);\n    sum_{at}<double><<<n, block>>>(nullptr, nullptr, n);\n}}\n"),
        ];
        for part in parts {
            let _ = text.write_str(&part);
        }
    }
    text.push_str("}\n");
    text
}

/// A header without device code, as most files of a tree are.
fn header(functions: usize) -> String {
    let mut text = String::from("#pragma once\n#include <vector>\n#define SIZE 64\n");
    for at in 0..functions {
        let _ = writeln!(
            text,
            "/// Says how many there are.\ninline int count_{at}(const std::vector<int>& all, int least) {{\n    int found = 0;\n    for (int one : all) {{ if (one >= least) {{ ++found; }} }}\n    return found;\n}}"
        );
    }
    text
}

fn scanned(c: &mut Criterion) {
    let sets = [("kernels", source(200)), ("header", header(600))];
    let mut group = c.benchmark_group("scan");
    for (name, text) in &sets {
        group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(20);
        let mut scanner = Scanner::default();
        let aliases = Aliases::default();
        group.bench_function(*name, |b| b.iter(|| black_box(scanner.scan(text.as_bytes(), &aliases))));
    }
    group.finish();
    let file = Scanner::default().scan(sets[0].1.as_bytes(), &Aliases::default());
    let gathered = |at: u32| Gathered { name: format!("src/{at}.cu"), input: Some(at), file: file.clone() };
    let files: Vec<Gathered> = (0..20).map(gathered).collect();
    c.bench_function("gather 20 files", |b| {
        b.iter(|| {
            let mut report = Report::default();
            gather(&files, &mut report);
            black_box(report.units.len())
        });
    });
}

criterion_group!(benches, scanned);
criterion_main!(benches);
