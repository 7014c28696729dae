//! The idioms that sources are written in, each with what is to be read of it.

use warplint::model::{ArraySpace, Declaration, LaunchForm, LaunchSite, NameId, Report, Stated};
use warplint::parse::cuda::{Aliases, Gathered, Scanner, gather, scan};

/// What the files of a project hold, by name and text.
fn project(files: &[(&str, &str)]) -> Report {
    let mut scanner = Scanner::default();
    let mut aliases = Aliases::default();
    for (_, text) in files {
        aliases.add(scanner.scan(text.as_bytes(), &aliases).aliases);
    }
    let files = (0..).zip(files).map(|(input, (name, text))| Gathered {
        name: (*name).to_owned(),
        input: Some(input),
        file: scanner.scan(text.as_bytes(), &aliases),
    });
    let mut report = Report::default();
    gather(&files.collect::<Vec<_>>(), &mut report);
    report
}

fn read(text: &str) -> Report {
    project(&[("a.cu", text)])
}

fn name(report: &Report, id: NameId) -> String {
    String::from_utf8_lossy(report.names.get(id)).into_owned()
}

fn kernels(report: &Report) -> Vec<String> {
    report.units.iter().flat_map(|unit| &unit.declarations).map(|one| name(report, one.name)).collect()
}

/// The only kernel of a text.
fn kernel(text: &str) -> (Report, Declaration) {
    let report = read(text);
    let [one] = &report.units[0].declarations[..] else { panic!("not one kernel: {:?}", kernels(&report)) };
    let one = one.clone();
    (report, one)
}

fn launches(report: &Report) -> Vec<&LaunchSite> {
    report.units.iter().flat_map(|unit| &unit.launches).collect()
}

/// The callee of the only launch.
fn callee(text: &str) -> Option<String> {
    let report = read(text);
    let [one] = launches(&report)[..] else { panic!("not one launch: {report:?}") };
    one.callee.map(|callee| name(&report, callee))
}

/// The block of each launch of the text.
fn blocks(text: &str) -> Vec<[Option<u32>; 3]> {
    launches(&read(text)).iter().map(|launch| launch.block).collect()
}

/// The block of the only launch in a function that begins with `before`.
fn block(before: &str, launch: &str) -> [Option<u32>; 3] {
    let [one] = blocks(&format!("void f(int n) {{ {before} {launch} }}"))[..] else { panic!("not one launch") };
    one
}

fn line(threads: u32) -> [Option<u32>; 3] {
    shape(threads, 1, 1)
}

fn shape(x: u32, y: u32, z: u32) -> [Option<u32>; 3] {
    [Some(x), Some(y), Some(z)]
}

const UNKNOWN: [Option<u32>; 3] = [None, None, None];

/// A row of so many threads as a variable says, which is a number and no `dim3`.
const ROW: [Option<u32>; 3] = [None, Some(1), Some(1)];

#[test]
fn idiom_01_an_attribute_after_the_return_type() {
    let (report, one) = kernel("__global__ void __launch_bounds__(128, 2) a(int* p) {}");
    assert_eq!(name(&report, one.name), "a");
    assert_eq!((one.bounds.max_threads, one.bounds.min_blocks), (Stated::As(128), Stated::As(2)));
    assert!(one.is_definition && !one.is_template);
}

#[test]
fn idiom_02_an_attribute_before_global() {
    let (report, one) = kernel("__launch_bounds__(64) static __global__ void b() {}");
    assert_eq!(name(&report, one.name), "b");
    assert_eq!(one.bounds.max_threads, Stated::As(64));
    assert_eq!((one.extent.start, one.extent.end), (0, 51));
}

#[test]
fn idiom_03_templates_extern_c_and_namespaces() {
    let report = read(
        "template <int N> __global__ void c(float (&x)[N]) {}\nextern \"C\" __global__ void c2() {}\nextern \"C\" { __global__ void c3() {} }\nnamespace a { namespace b::c { namespace { __global__ void c4(); } } }",
    );
    assert_eq!(kernels(&report), ["c", "c2", "c3", "a::b::c::(anonymous namespace)::c4"]);
    assert_eq!(
        report.units[0].declarations.iter().map(|one| one.is_template).collect::<Vec<_>>(),
        [true, false, false, false]
    );
}

#[test]
fn idiom_04_qualifiers_in_any_order() {
    assert_eq!(
        kernels(&read("static __global__ void d() {}\n__global__ static void d2() {}\nvoid __global__ d3() {}")),
        ["d", "d2", "d3"]
    );
}

#[test]
fn idiom_05_an_explicit_specialization_keeps_its_arguments() {
    let (report, one) = kernel("template <> __global__ void e<float>(float* p) {}");
    assert_eq!((name(&report, one.name), name(&report, one.base)), ("e<float>".to_owned(), "e".to_owned()));
    assert!(!one.is_template);
}

#[test]
fn idiom_06_clusters_and_registers() {
    let (report, one) = kernel("__global__ void __cluster_dims__(2,1,1) __maxnreg__(64) f() {}");
    assert_eq!(name(&report, one.name), "f");
    assert_eq!((one.bounds.cluster, one.bounds.max_registers), (Some([2, 1, 1]), Stated::As(64)));
    let (_, one) = kernel("__global__ void __block_size__((128, 1, 1), (2, 1, 1)) f() {}");
    assert_eq!(one.bounds.block.map(|block| block.threads()), Some(128));
}

#[test]
fn idiom_07_a_third_launch_bound() {
    let (_, one) = kernel("__global__ void __launch_bounds__(256, 1, 4) g() {}");
    assert_eq!(
        (one.bounds.max_threads, one.bounds.min_blocks, one.bounds.max_cluster),
        (Stated::As(256), Stated::As(1), Stated::As(4))
    );
}

#[test]
fn idiom_08_a_macro_that_stands_for_global_in_the_whole_project() {
    let report = project(&[("k.cu", "MY_KERNEL void h() {}"), ("m.h", "#define MY_KERNEL __global__ static\n")]);
    assert_eq!(kernels(&report), ["h"]);
    assert_eq!(kernels(&read("RAFT_KERNEL h() {}\nGLOBAL void g() {}\nenum { GLOBAL };")), ["h"]);
}

#[test]
fn idiom_09_a_macro_with_the_return_type() {
    assert_eq!(kernels(&read("#define KV static __global__ void\nKV i() {}")), ["i"]);
}

#[test]
fn idiom_10_an_attribute_macro_with_arguments_is_no_name_and_may_set_bounds() {
    let (report, one) = kernel("__global__ BOUNDS(128) void j() {}");
    assert_eq!(name(&report, one.name), "j");
    assert_eq!(one.bounds.max_threads, Stated::Unknown);
    let (report, one) = kernel("#define LIMIT(n) __launch_bounds__(n)\n__global__ void LIMIT(64) j() {}");
    assert_eq!((name(&report, one.name), one.bounds.max_threads), ("j".to_owned(), Stated::Unknown));
    let (_, one) = kernel("__global__ FLATTEN void j() {}");
    assert_eq!(one.bounds.max_threads, Stated::No);
}

#[test]
fn idiom_11_an_if_around_an_attribute_makes_its_figure_unknown() {
    let (report, one) = kernel("#if X\n__launch_bounds__(128)\n#endif\n__global__ void k() {}");
    assert_eq!((name(&report, one.name), one.bounds.max_threads), ("k".to_owned(), Stated::Unknown));
    let (_, one) =
        kernel("__global__ void\n#if X\n__launch_bounds__(128)\n#else\n__launch_bounds__(64)\n#endif\nk() {}");
    assert_eq!(one.bounds.max_threads, Stated::Unknown);
}

#[test]
fn idiom_12_an_if_between_type_and_name_with_a_brace_in_both_branches() {
    let report = read("__global__ void\n#ifdef A\nl(int a) {\n#else\nl() {\n#endif\nint x;\n}\n__global__ void m() {}");
    assert_eq!(kernels(&report), ["l", "m"]);
    assert_eq!(report.units[0].declarations[0].lines, (1, 8));
}

#[test]
fn idiom_13_a_name_that_a_macro_makes() {
    let (report, one) = kernel("__global__ void NAME(m, _f32)(int n) {}");
    assert_eq!(name(&report, one.name), "NAME(m,_f32)");
    assert!(one.is_macro_made);
}

#[test]
fn idiom_14_kernels_and_launches_within_macros() {
    let report = read(
        "#define RUN(k, n) \\\n  k<<<n, 128>>>(n)\n#define DEF(name) \\\n  __global__ void name(int a) \\\n  { }\n",
    );
    let launch = launches(&report)[0];
    assert!(launch.in_macro && launch.callee.is_none());
    assert_eq!((launch.block, launch.grid, launch.quote.place.line), (line(128), UNKNOWN, 2));
    let one = &report.units[0].declarations[0];
    assert!(one.is_macro_made && one.is_definition);
    assert_eq!(one.lines, (4, 5));
}

#[test]
fn idiom_15_a_declaration_alone() {
    let (_, one) = kernel("__global__ void n(int);");
    assert!(!one.is_definition);
}

#[test]
fn friends_and_instantiations_declare_no_kernel_again() {
    let text = "template <int N> __global__ void k(int) {}\ntemplate __global__ void k<4>(int);\n";
    assert_eq!(kernels(&read(text)), ["k"]);
    let text = "#define FRIEND friend __global__\nstruct S { FRIEND void k(int); friend __global__ void k(int); };\n";
    assert_eq!(kernels(&read(&format!("{text}__global__ void k(int) {{}}"))), ["k"]);
}

#[test]
fn code_that_is_not_for_cuda_declares_and_launches_nothing() {
    let text = |condition: &str| {
        format!(
            "#if {condition}\n__global__ void a() {{}}\nvoid f() {{ a<<<1, 64>>>(); }}\n#else\n__global__ void b() {{}}\nvoid f() {{ b<<<1, 32>>>(); }}\n#endif\n"
        )
    };
    for condition in ["CUDART_VERSION < 9000", "defined(USE_ROCM)", "defined(__HIP_PLATFORM_AMD__) && X"] {
        let report = read(&text(condition));
        assert_eq!((kernels(&report), blocks(&text(condition))), (vec!["b".to_owned()], vec![line(32)]), "{condition}");
    }
    // The compiler for the host comes there as well.
    assert_eq!(kernels(&read(&text("__CUDA_ARCH__ < 700"))), ["b"]);
    assert_eq!(blocks(&text("__CUDA_ARCH__ < 700")), [line(64), line(32)]);
    assert_eq!(kernels(&read(&text("CUDA_VERSION < 12000"))), ["a", "b"]);
    let hip = format!("#include <hip/hip_runtime.h>\n{}", text("defined(USE_ROCM)"));
    assert_eq!(kernels(&read(&hip)), ["a", "b"]);
}

#[test]
fn a_launch_is_read_as_formatters_write_it() {
    assert_eq!(
        blocks("void f() { k << <2, 96>> >(1); k<int> << <2, dim3(8, 8) >> > (1); }"),
        [line(96), [Some(8), Some(8), Some(1)]]
    );
    assert!(blocks("void f() { std::cout << (a < b) << c; operator<< <int>(a, b); x = a >> (b > c); }").is_empty());
}

#[test]
fn idiom_16_a_grid_constant() {
    let (report, one) = kernel("__global__ void o(const __grid_constant__ P p) {}");
    assert_eq!(name(&report, one.name), "o");
}

#[test]
fn idiom_17_the_launch_of_a_template() {
    let report = read("void f() { ns::q<T, (N > 4)><<<2, 64>>>(x); }");
    let launch = launches(&report)[0];
    assert_eq!(launch.callee.map(|callee| name(&report, callee)).as_deref(), Some("ns::q"));
    assert_eq!(launch.arguments.map(|arguments| name(&report, arguments)).as_deref(), Some("T,(N>4)"));
    assert_eq!((launch.grid, launch.block, launch.form), (line(2), line(64), LaunchForm::Chevrons));
    assert_eq!(launch.span, (11, 28));
}

#[test]
fn idiom_18_a_variable_that_holds_the_kernel() {
    assert_eq!(callee("void f() { auto fn = r<float>; fn<<<g, b, s, t>>>(x); }").as_deref(), Some("r"));
    assert_eq!(callee("void f() { auto fn = &r<float>; fn<<<g, b>>>(x); }").as_deref(), Some("r"));
    assert_eq!(callee("void f() { auto fn = r<1>; if (n) fn = r<2>; fn<<<g, b>>>(x); }"), None);
    assert_eq!(callee("void f(void (*fn)(int)) { fn<<<g, b>>>(x); }"), None);
    assert_eq!(callee("template <class F> void f(F fn) { fn<<<g, b>>>(x); }"), None);
    assert_eq!(callee("void f() { fns[2]<<<g, b>>>(x); }"), None);
}

#[test]
fn idiom_19_a_line_break_before_the_chevrons() {
    let report = read("void f() {\n  s<int>\n  <<<g, 32>>>(x);\n}");
    let launch = launches(&report)[0];
    assert_eq!((launch.quote.place.line, launch.block), (2, line(32)));
    assert_eq!(launch.block_at.as_ref().map(|(_, line)| *line), Some(3));
}

#[test]
fn idiom_20_commas_in_templates_and_calls() {
    assert_eq!(block("", "t<<<ceil_div<int, 4>(n), dim3(8, 8)>>>(x);"), shape(8, 8, 1));
    assert_eq!(block("", "t<<<a < b ? 1 : 2, 64>>>(x);"), line(64));
}

#[test]
fn idiom_21_templates_that_close_together_are_no_launch() {
    assert!(launches(&read("A<B<C<int>>> v; void f() { x <<<y; std::cout <<< z; }\n<<<<<<< HEAD\n")).is_empty());
}

#[test]
fn idiom_22_a_dim3_by_its_constructor() {
    let launch = |block: &str| format!("k<<<1, {block}>>>();");
    assert_eq!(block("dim3 b(16, 16);", &launch("b")), shape(16, 16, 1));
    assert_eq!(block("dim3 g(1), b2 {32, 2};", &launch("b2")), shape(32, 2, 1));
    assert_eq!(block("dim3 b3 = dim3(8);", &launch("b3")), line(8));
    assert_eq!(block("const dim3 b = {4, 4, 2};", &launch("b")), shape(4, 4, 2));
    assert_eq!(block("dim3 b = 96;", &launch("b")), line(96));
    assert_eq!(block("auto b = dim3{8, n};", &launch("b")), [Some(8), None, Some(1)]);
    assert_eq!(block("dim3 a(4, 2); dim3 b(a.x * 8, a.y);", &launch("b")), shape(32, 2, 1));
}

#[test]
fn idiom_23_a_dim3_by_its_fields() {
    assert_eq!(block("dim3 b; b.x = 8; b.y = 4;", "k<<<1, b>>>();"), shape(8, 4, 1));
}

#[test]
fn idiom_24_what_is_set_under_a_condition_is_unknown() {
    assert_eq!(block("dim3 b(n); if (n > 1024) b.x = 1024;", "k<<<1, b>>>();"), ROW);
    assert_eq!(block("dim3 b(64); if (n > 1024) { b.x = 1024; }", "k<<<1, b>>>();"), [None, Some(1), Some(1)]);
    assert_eq!(block("int t = 64; if (n) t = 32;", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; while (n--) { t *= 2; }", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; for (;;) {", "k<<<1, t>>>(); t = 32; }"), ROW);
    assert_eq!(block("int t = 64; init(&t);", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; choose(n, t);", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; int& r = t; r = 5;", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; std::cin >> t;", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; auto set = [&] { t = 3; }; set();", "k<<<1, t>>>();"), ROW);
    assert_eq!(block("int t = 64; switch (n) { case 1: t = 3; break; case 2:", "k<<<1, t>>>(); }"), ROW);
}

#[test]
fn idiom_24_what_is_set_on_every_way_to_the_launch_is_known() {
    assert_eq!(block("int t = 64; t = 32;", "k<<<1, t>>>();"), line(32));
    assert_eq!(block("int t = 64; printf(\"%d\", t); std::vector<int> v(t);", "k<<<1, t>>>(t);"), line(64));
    assert_eq!(block("int t; for (;;) { t = 32;", "k<<<1, t>>>(); }"), line(32));
    assert_eq!(block("int t = 64;", "k<<<1, t>>>(); t = 32;"), line(64));
    assert_eq!(blocks("void h(int, int x); void f() { int t = 64; h(3, t); k<<<1, t>>>(); }"), [line(64)]);
    assert_eq!(blocks("void h(int, int& x); void f() { int t = 64; h(3, t); k<<<1, t>>>(); }"), [ROW]);
}

#[test]
fn idiom_25_the_same_name_in_sibling_scopes() {
    let text = "void f() { { int t = 64; u<<<1, t>>>(); } { int t = 32; u<<<1, t>>>(); } }";
    assert_eq!(blocks(text), [line(64), line(32)]);
    let text = "const int t = 8; void f(int t) { u<<<1, t>>>(); } void g() { u<<<1, t>>>(); }";
    assert_eq!(blocks(text), [ROW, line(8)]);
}

#[test]
fn idiom_26_constants_of_every_kind() {
    let text =
        "#define D 16\nconstexpr int W{32}; enum { T = 4 * W, U }; static const unsigned C = D * 2; int v = 5;\n";
    let block = |of: &str| blocks(&format!("{text} void f() {{ k<<<1, {of}>>>(); }}"))[0];
    assert_eq!(
        [block("W"), block("T"), block("U"), block("C"), block("D")],
        [line(32), line(128), line(129), line(32), line(16)]
    );
    assert_eq!(block("v"), ROW);
    assert_eq!(
        blocks("struct S { static constexpr int N = 64; void f() { k<<<1, N>>>(); } }; void g() { k<<<1, S::N>>>(); }"),
        [line(64), line(64)]
    );
    assert_eq!(blocks("const float x = 100; void f() { k<<<1, x / 3>>>(); }"), [UNKNOWN]);
    assert_eq!(blocks("#define N 4 + 4\nvoid f() { k<<<1, N * 2>>>(); k<<<1, N>>>(); }"), [UNKNOWN, line(8)]);
}

#[test]
fn idiom_27_a_define_under_ifndef_is_the_default() {
    assert_eq!(blocks("#ifndef BS\n#define BS 128\n#endif\nvoid f() { k<<<1, BS>>>(); }"), [line(128)]);
    assert_eq!(
        blocks("#ifdef A\n#define BS 128\n#else\n#define BS 64\n#endif\nvoid f() { k<<<1, BS>>>(); }"),
        [UNKNOWN]
    );
    assert_eq!(
        blocks("#ifdef A\nconst int b = 128;\n#else\nconst int b = 64;\n#endif\nvoid f() { k<<<1, b>>>(); }"),
        [UNKNOWN]
    );
}

#[test]
fn a_macro_holds_from_its_definition_to_where_it_is_undone() {
    let local = "void f(int n) { const int T = 64; k<<<1, T>>>(); }\n";
    let parameter = "void f(int T) { k<<<1, T>>>(); }\n";
    assert_eq!(blocks(&format!("{local}{parameter}#define T 100\n")), [line(64), UNKNOWN]);
    assert_eq!(blocks(&format!("#define T 100\n#undef T\n{local}{parameter}")), [line(64), UNKNOWN]);
    assert_eq!(blocks(&format!("#define T(x) x\n{local}")), [line(64)]);
    let within = "void g() {\n#define T 100\nk<<<1, T>>>();\n#undef T // done\n}\n";
    assert_eq!(blocks(&format!("{within}{local}{parameter}")), [line(100), line(64), UNKNOWN]);
    // Each use has the definition before it.
    let use_of = |name: &str| format!("void {name}() {{ k<<<1, BS>>>(); }}\n");
    let text = ["#define BS 128\n", &use_of("f"), "#undef BS\n#define BS 96\n", &use_of("g")].concat();
    assert_eq!(blocks(&text), [line(128), line(96)]);
    // What nothing before it defines is not known.
    assert_eq!(blocks(&format!("{}#define BS 128\n", use_of("f"))), [UNKNOWN]);
}

#[test]
fn a_macro_that_may_hold_or_not_is_unknown_where_the_name_means_something_else() {
    let use_of = |head: &str| format!("void f({head}) {{ k<<<1, T>>>(); }}\n");
    for condition in ["#ifdef X\n#define T 100\n#endif\n", "#define T 100\n#ifdef X\n#undef T\n#endif\n"] {
        assert_eq!(blocks(&format!("{condition}{}", use_of("int T"))), [UNKNOWN], "{condition}");
        assert_eq!(blocks(&format!("{condition}{}", use_of(""))), [line(100)], "{condition}");
    }
    let both = |number: u32| format!("#ifdef X\n#define T 100\n#else\nconst int T = {number};\n#endif\n");
    assert_eq!(blocks(&format!("{}{}", both(100), use_of(""))), [line(100)]);
    assert_eq!(blocks(&format!("{}{}", both(64), use_of(""))), [UNKNOWN]);
}

#[test]
fn a_macro_in_the_body_of_another_is_what_it_is_where_that_is_used() {
    let text = "#define W (2 * T)\n#define T 32\nvoid f() { k<<<1, W>>>(); }\n";
    assert_eq!(blocks(text), [line(64)]);
    let local = "#define W (2 * T)\nvoid f() { const int T = 16; k<<<1, W>>>(); }\n#define T 32\n";
    assert_eq!(blocks(local), [line(32)]);
    let launch = "#define RUN(n) { int T = n; k<<<1, T>>>(); }\n#define T 32\n";
    assert_eq!(blocks(launch), [UNKNOWN]);
}

#[test]
fn a_template_parameter_is_no_macro_of_its_name() {
    let text = "template <int T> __global__ void __launch_bounds__(T) k() {}\n#define T 64\n#define U 32\n";
    let report = read(text);
    assert_eq!(report.units[0].declarations[0].bounds.max_threads, Stated::Unknown);
    let file = scan(text.as_bytes(), &Aliases::default());
    assert_eq!([b"T", b"U"].map(|name| file.constant(name)), [None, Some(32)]);
}

#[test]
fn idiom_28_a_block_of_run_time_is_unknown() {
    assert_eq!(block("", "v<<<g, std::min(n, 256)>>>(x);"), UNKNOWN);
    assert_eq!(block("", "v<<<g, std::min(512, 256)>>>(x);"), line(256));
}

#[test]
fn idiom_29_literals_with_suffixes() {
    let of = |text: &str| block("", &format!("k<<<1, {text}>>>();"))[0];
    assert_eq!(
        ["1024U", "1'024", "0x100u", "1 << 8", "(int)sizeof(float) * 8"].map(of),
        [1024, 1024, 256, 256, 32].map(Some)
    );
}

#[test]
fn idiom_30_launches_by_calls() {
    let known = |text: &str| {
        let report = read(&format!("void f() {{ dim3 g(2), b(64); {text} }}"));
        let [one] = launches(&report)[..] else { panic!("not one launch: {text}") };
        (
            one.callee.map(|callee| name(&report, callee)),
            one.grid[0],
            one.block[0],
            one.dynamic_shared.map(|bytes| bytes.0),
            one.form,
        )
    };
    let expected = |shared: Option<u32>| (Some("w".to_owned()), Some(2), Some(64), shared, LaunchForm::Call);
    assert_eq!(known("cudaLaunchKernel((void*)w, g, b, args, 0, s);"), expected(Some(0)));
    assert_eq!(known("cudaLaunchCooperativeKernel((void*)&w<int>, g, b, args, 16, s);"), expected(Some(16)));
    assert_eq!(known("hipLaunchKernelGGL(w, g, b, 0, s, x);"), expected(Some(0)));
    assert_eq!(known("hipLaunchKernelGGL(HIP_KERNEL_NAME(w<int>), g, b, 0, s, x);").1, Some(2));
    assert_eq!(known("triple_chevron(g, b, 8, s).doit(w, x);"), expected(Some(8)));
    let config =
        "cudaLaunchConfig_t cfg = {0}; cfg.gridDim = g; cfg.blockDim = b; cfg.dynamicSmemBytes = 32; cfg.stream = s;";
    assert_eq!(known(&format!("{config} cudaLaunchKernelEx(&cfg, w, x);")), expected(Some(32)));
    assert_eq!(known("cudaLaunchConfig_t cfg{g, b}; cudaLaunchKernelExC(&cfg, (void*)w, a);"), expected(Some(0)));
    assert_eq!(
        known("cudaLaunchConfig_t cfg; cfg.gridDim = 2; cfg.blockDim.x = 64; cudaLaunchKernelEx(&cfg, w, x);"),
        expected(None)
    );
    assert_eq!(
        known("cuLaunchKernel(fn, 2, 1, 1, 64, 1, 1, 0, s, a, 0);"),
        (None, Some(2), Some(64), Some(0), LaunchForm::Call)
    );
    assert!(launches(&read("cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s);")).is_empty());
}

#[test]
fn idiom_31_shared_arrays_and_their_bytes() {
    let (report, one) =
        kernel("__global__ void k() { __shared__ float a[16][17], c[8]; volatile __shared__ int d[4]; float r[4]; }");
    let arrays: Vec<_> = one
        .arrays
        .iter()
        .map(|array| (name(&report, array.name), array.space, array.bytes.map(|bytes| bytes.0)))
        .collect();
    let expected = [
        ("a", ArraySpace::Shared, 1088),
        ("c", ArraySpace::Shared, 32),
        ("d", ArraySpace::Shared, 16),
        ("r", ArraySpace::Local, 16),
    ];
    assert_eq!(arrays, expected.map(|(name, space, bytes)| (name.to_owned(), space, Some(bytes))));
}

#[test]
fn idiom_31_an_array_is_indexed_by_what_is_no_constant() {
    let indexed = |text: &str| {
        kernel(&format!("template <int N> __global__ void k(int n) {{ float r[4]; {text} }}")).1.arrays[0].is_indexed
    };
    assert!(indexed("r[n] = 1;") && indexed("r[threadIdx.x] = 1;") && indexed("for (int i = 0; i < n; i++) r[i] = 0;"));
    assert!(!indexed("r[3] = 1; r[N] = 2;") && !indexed("for (int i = 0; i < 4; i++) { r[i] = 0; }"));
    assert!(!indexed("\n#pragma unroll\nfor (int i = 0; i < N; i++) r[i] = 0;"));
}

#[test]
fn idiom_32_dynamic_shared_memory() {
    let (report, one) = kernel("__global__ void k() { extern __shared__ __align__(16) char sm[]; }");
    let [array] = &one.arrays[..] else { panic!("not one array") };
    assert_eq!((name(&report, array.name).as_str(), array.space, array.bytes), ("sm", ArraySpace::DynamicShared, None));
}

#[test]
fn idiom_33_shared_memory_of_unknown_size() {
    let (_, one) = kernel(
        "template <class T, int N> __global__ void k() { __shared__ Storage<T> st; __shared__ T z[N]; __shared__ float w[N]; }",
    );
    assert_eq!(one.arrays.iter().map(|array| array.bytes).collect::<Vec<_>>(), [None, None, None]);
}

#[test]
fn idiom_42_a_lambda_in_a_dispatch_macro_that_launches() {
    let text = "void f() { int b = 128; DISPATCH(t, [&] { y<T><<<g, b>>>(x); }); }";
    assert_eq!((callee(text).as_deref(), blocks(text)), (Some("y"), vec![line(128)]));
    let text = "const int W = 4; void f() { DISPATCH(t, W, [&] { y<W><<<g, W>>>(x); }); }";
    assert_eq!(blocks(text), [UNKNOWN]);
}

#[test]
fn idiom_43_dead_code() {
    assert!(launches(&read("void f() {\n#if 0\nz<<<1, 1>>>();\n#endif\n}")).is_empty());
    let report = read(
        "// k<<<1, 1>>>();\n/* __global__ void k() {} */ const char* s = R\"x(__global__ void k() {} k<<<1, 1>>>();)x\";",
    );
    assert!(launches(&report).is_empty() && kernels(&report).is_empty());
}

#[test]
fn constants_of_other_files_are_known_where_the_project_agrees() {
    let user = "void f() { k<<<1, BLOCK * 2>>>(); }";
    let blocks = |files: &[(&str, &str)]| launches(&project(files))[0].block;
    assert_eq!(blocks(&[("a.cu", user), ("b.h", "#define BLOCK 64\n")]), line(128));
    assert_eq!(blocks(&[("a.cu", user), ("b.h", "#define BLOCK 64\n"), ("c.h", "constexpr int BLOCK = 32;")]), UNKNOWN);
    assert_eq!(
        blocks(&[("x/a.cu", user), ("x/b.h", "#define BLOCK 64\n"), ("y/b.h", "#define BLOCK 32\n")]),
        line(128)
    );
    assert_eq!(blocks(&[("x/a.cu", user), ("z/b.h", "#define BLOCK 64\n"), ("y/b.h", "#define BLOCK 32\n")]), UNKNOWN);
    assert_eq!(blocks(&[("a.cu", user), ("b.h", "#define BLOCK WARP\n"), ("c.h", "#define WARP 32\n")]), line(64));
    assert_eq!(
        blocks(&[("a.cu", user), ("b.h", "struct S { int BLOCK; };\n#define X 1\nconst int y = BLOCK;")]),
        UNKNOWN
    );
}

#[test]
fn a_launch_in_parentheses_has_its_arguments_from_a_macro() {
    assert_eq!(callee("void f() { CALL(rng, (gen<<<n, 128, 0, s>>>), out); }").as_deref(), Some("gen"));
}

#[test]
fn a_launch_behind_a_macro_without_a_semicolon_is_one() {
    assert_eq!(callee("void f() { CHECKED\n hipLaunchKernelGGL(w, g, b, 0, s, x); }").as_deref(), Some("w"));
}

#[test]
fn names_put_together_by_a_macro_are_told_as_such() {
    let report = read("#define CONVERT(A) template <class T> __global__ void conv##A##Kernel(T p) { run<A>(p); }\n");
    assert!(report.units[0].declarations[0].is_macro_made);
}

#[test]
fn what_is_quoted_is_the_line_of_the_name() {
    let (report, one) = kernel("__global__ void\n  scale(float* x)\n{\n}\n");
    assert_eq!(report.texts.get(one.quote.text), b"  scale(float* x)");
    assert_eq!((one.span, one.lines, one.quote.place.offset), ((2, 7), (1, 4), 16));
}

#[test]
fn what_a_kernel_is_given_is_counted_where_it_stands_there() {
    let passed = |launch: &str| {
        let text = format!(
            "__global__ void k(float*, int);\n#define TWO 2\n#define BOTH p, 3\nvoid f(float* p, int N) {{ {launch} }}\n"
        );
        let report = read(&text);
        let [one] = launches(&report)[..] else { panic!("not one launch: {launch}") };
        one.passed
    };
    for (launch, expected) in [
        ("k<<<1, 32>>>(p, 3);", Some(2)),
        ("k<<<1, 32>>>();", Some(0)),
        ("k<<<1, 32>>>(g(p, 3), h<1, 2>(), {1, 2});", Some(3)),
        ("k<<<1, 32>>>(p, N, TWO);", Some(3)),
        ("k<<<1, 32>>>(BOTH);", None),
        ("k<<<1, 32>>>(p, WRAP(p, 3));", None),
        ("k<<<1, 32>>>(p, args...);", None),
        ("hipLaunchKernelGGL(k, 1, 32, 0, 0, p, 3);", Some(2)),
        ("hipLaunchKernelGGL(k, 1, 32, 0, 0);", Some(0)),
        ("cudaLaunchKernelEx(&config, k, p, 3);", Some(2)),
        ("triple_chevron(1, 32, 0, s).doit(k, p, 3);", Some(2)),
        ("cudaLaunchKernel(k, 1, 32, args, 0, s);", None),
    ] {
        assert_eq!(passed(launch), expected, "{launch}");
    }
    let report = read("#define RUN(...) k<<<1, 32>>>(__VA_ARGS__)\n__global__ void k(float*, int);\n");
    assert_eq!(launches(&report)[0].passed, None);
}

#[test]
fn the_parameters_of_templates_are_counted() {
    let count = |head: &str| kernel(&format!("{head} __global__ void k(int* p) {{}}\n")).1.template_parameters;
    assert_eq!(count("template <int B, typename T>"), Some(2));
    assert_eq!(count("template <template <typename, int> class A, typename T = void>"), Some(2));
    assert_eq!(count("template <typename... Ts>"), None);
    assert_eq!(count("template <PARAMETERS>"), None);
    assert_eq!(count("template <>"), None);
    assert_eq!(count(""), None);
}
