//! The tables of limits and products: complete, consistent, and what the published figures say.

#![allow(clippy::unwrap_used, reason = "a malformed table should stop the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warplint::gpu::{FigureValue, Gpu, GpuError, Product, Target, product_sources, products};
use warplint::model::Arch;

type Row = BTreeMap<String, String>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A table of fixtures: fields may be quoted, and hold no quotes themselves.
fn csv(name: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("fixtures/occupancy").join(name)).unwrap();
    let mut lines = text.lines().map(fields);
    let columns = lines.next().unwrap();
    lines.map(|row| columns.iter().cloned().zip(row).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

fn arch(capability: &str) -> Arch {
    let (major, minor) = capability.split_once('.').unwrap();
    Arch::new(major.parse().unwrap(), minor.parse().unwrap())
}

/// Column of `arch.csv` and key of the target files.
const FIGURES: [(&str, &str); 28] = [
    ("warp_size", "warp-size"),
    ("max_warps_per_sm", "max-warps-per-sm"),
    ("max_threads_per_sm", "max-threads-per-sm"),
    ("max_blocks_per_sm", "max-blocks-per-sm"),
    ("max_threads_per_block", "max-threads-per-block"),
    ("regs_per_sm", "registers-per-sm"),
    ("regs_per_block", "registers-per-block"),
    ("max_regs_per_thread", "max-registers-per-thread"),
    ("header_max_regs_per_thread", "header-max-registers-per-thread"),
    ("reg_alloc_unit", "register-alloc-unit"),
    ("warp_alloc_granularity", "warp-alloc-granularity"),
    ("smem_per_sm", "shared-per-sm"),
    ("smem_per_block_default", "shared-per-block-default"),
    ("smem_per_block_optin", "shared-per-block-optin"),
    ("smem_reserved_per_block", "shared-reserved-per-block"),
    ("smem_alloc_unit", "shared-alloc-unit"),
    ("smem_configs_kib", "shared-configs-kib"),
    ("unified_l1_kib", "unified-l1-kib"),
    ("sub_partitions", "sub-partitions"),
    ("issue_per_scheduler", "issues-per-scheduler"),
    ("fp32_lanes", "fp32-lanes-per-sm"),
    ("fp64_per_clock", "fp64-per-clock-per-sm"),
    ("tensor_cores", "tensor-cores-per-sm"),
    ("max_cluster_portable", "max-cluster-portable"),
    ("max_cluster_nonportable", "max-cluster-non-portable"),
    ("barriers_per_sm", "barriers-per-sm"),
    ("virtual_resources_per_sm", "virtual-resources-per-sm"),
    ("partitioned_gc", "partitioned-caching"),
];

fn spelled(value: Option<&FigureValue>) -> String {
    match value {
        None => String::new(),
        Some(FigureValue::Number(number)) => number.to_string(),
        Some(FigureValue::Flag(flag)) => u8::from(*flag).to_string(),
        Some(FigureValue::List(list)) => list.iter().map(u32::to_string).collect::<Vec<String>>().join("/"),
    }
}

#[test]
fn every_figure_of_the_table_is_in_its_target_file_and_no_other_is() {
    let rows = csv("arch.csv");
    assert_eq!(rows.len(), 26);
    assert_eq!(Target::known().collect::<Vec<Arch>>(), rows.iter().map(|row| arch(&row["cc"])).collect::<Vec<Arch>>());
    for row in rows {
        let target = Target::of(arch(&row["cc"])).unwrap();
        let figures = target.figures();
        assert_eq!(figures.len(), FIGURES.len());
        for (column, key) in FIGURES {
            let figure = figures.iter().find(|figure| figure.key == key).unwrap();
            assert_eq!(spelled(figure.value.as_ref()), row[column], "{} {key}", row["cc"]);
            let unverified = row["unverified"].split(' ').any(|name| name == column);
            assert_eq!(figure.unverified, unverified, "{} {key}", row["cc"]);
        }
        assert_eq!(target.family, row["family"]);
        assert_eq!(target.names.join(" "), row["sm_names"]);
        assert_eq!(target.in_ptxas_13_5, row["ptxas_13_5"] == "1");
    }
}

#[test]
fn every_figure_names_a_source_that_its_file_explains() {
    for target in Target::known().filter_map(Target::of) {
        for figure in target.figures().iter().filter(|figure| figure.value.is_some()) {
            assert!(!figure.sources.is_empty(), "{} {}", target.arch, figure.key);
            for source in &figure.sources {
                assert!(target.citation(source).is_some(), "{} {} cites {source}", target.arch, figure.key);
            }
        }
    }
}

#[test]
fn no_target_file_has_keys_that_nothing_reads_or_sources_that_nothing_cites() {
    let keys: BTreeSet<&str> = FIGURES.iter().map(|(_, key)| *key).collect();
    let top = ["compute-capability", "family", "names", "in-ptxas-13-5", "notes", "limits", "sources"];
    let mut files = 0;
    for entry in std::fs::read_dir(root().join("rules/targets")).unwrap() {
        let path = entry.unwrap().path();
        let file: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let capability = file["compute-capability"].as_str().unwrap();
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), arch(capability).to_string(), "{}", path.display());
        assert!(file.keys().all(|key| top.contains(&key.as_str())), "{}", path.display());
        let mut cited: BTreeSet<&str> =
            file["names"]["source"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for (key, figure) in file["limits"].as_table().unwrap() {
            assert!(keys.contains(key.as_str()), "{} {key}", path.display());
            let fields = figure.as_table().unwrap();
            assert!(fields.keys().all(|field| ["value", "source", "unverified"].contains(&field.as_str())));
            cited.extend(figure["source"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()));
        }
        let explained: BTreeSet<&str> = file["sources"].as_table().unwrap().keys().map(String::as_str).collect();
        assert_eq!(cited, explained, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, Target::known().len());
}

#[test]
fn the_limits_of_a_target_fit_together() {
    for target in Target::known().filter_map(Target::of) {
        let name = target.arch;
        assert_eq!(target.max_warps_per_sm * target.warp_size, target.max_threads_per_sm, "{name}");
        assert_eq!(target.registers_per_sm % target.register_alloc_unit, 0, "{name}");
        assert_eq!(target.registers_per_sm % target.registers_per_block, 0, "{name}");
        assert_eq!(target.shared_per_sm % target.shared_alloc_unit, 0, "{name}");
        assert_eq!(target.max_warps_per_sm % target.sub_partitions, 0, "{name}");
        assert!(target.max_threads_per_block <= target.max_threads_per_sm, "{name}");
        assert!(target.shared_per_block_default <= target.shared_per_block_optin, "{name}");
        assert!(target.shared_per_block_optin + target.shared_reserved_per_block <= target.shared_per_sm, "{name}");
        assert!(target.shared_configs_kib.is_sorted(), "{name}");
        assert_eq!(target.shared_configs_kib.last().unwrap() * 1024, target.shared_per_sm, "{name}");
        assert!(target.max_cluster_portable <= target.max_cluster_non_portable, "{name}");
        assert_eq!(target.has_clusters(), name.at_least(9, 0), "{name}");
        assert!(target.names.iter().all(|text| text.parse::<Arch>().unwrap().device() == name), "{name}");
    }
}

#[test]
fn a_suffix_does_not_change_the_limits() {
    assert_eq!(Target::of("sm_90a".parse().unwrap()), Target::of(Arch::new(9, 0)));
    assert_eq!(Target::of("sm_103f".parse().unwrap()), Target::of(Arch::new(10, 3)));
    assert_eq!(Target::of(Arch::new(9, 9)), None);
}

#[test]
fn an_unknown_architecture_is_near_the_latest_earlier_one() {
    assert_eq!(Target::nearest(Arch::new(8, 5)), Arch::new(8, 0));
    assert_eq!(Target::nearest(Arch::new(13, 0)), Arch::new(12, 1));
    assert_eq!(Target::nearest(Arch::new(2, 0)), Arch::new(3, 0));
}

fn shown(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[test]
fn every_figure_of_the_product_table_is_in_the_products_and_no_other_is() {
    let rows = csv("products.csv");
    assert_eq!(rows.len(), 131);
    assert_eq!(products().len(), rows.len());
    let by_name: BTreeMap<&str, &Product> = products().map(|product| (product.name.as_str(), product)).collect();
    for row in rows {
        let product = by_name[row["name"].as_str()];
        let device = &product.device;
        assert_eq!(product.arch, arch(&row["cc"]));
        assert_eq!(product.aliases.join(";"), row["aliases"], "{}", product.name);
        assert_eq!(product.sources.join("+"), row["sources"], "{}", product.name);
        assert_eq!(product.notes.clone().unwrap_or_default(), row["notes"], "{}", product.name);
        for (value, column) in [
            (device.sm_count.map(f64::from), "sm_count"),
            (device.boost_mhz, "boost_mhz"),
            (device.bandwidth_gbs, "mem_bandwidth_gbs"),
            (device.memory_gb, "mem_gb"),
            (device.l2_mb, "l2_mb"),
            (device.fp32_tflops, "fp32_tflops"),
        ] {
            let expected = row[column].parse::<f64>().ok();
            assert_eq!(shown(value), shown(expected), "{} {column}", product.name);
        }
    }
}

#[test]
fn every_product_has_known_limits_and_its_sources_are_explained() {
    for product in products() {
        assert!(Target::of(product.arch).is_some(), "{}", product.name);
        let has_figure = product.device != warplint::gpu::Device::default();
        assert_eq!(has_figure, !product.sources.is_empty(), "{}", product.name);
        for letter in &product.sources {
            assert!(product_sources().iter().any(|(name, _)| name == letter), "{}", product.name);
        }
    }
}

#[test]
fn every_name_of_a_product_leads_back_to_it() {
    for product in products() {
        for name in product.names() {
            for spelling in [name.to_owned(), name.to_uppercase(), format!("NVIDIA {name}"), name.replace(' ', "_")] {
                let gpu = Gpu::resolve(&spelling).unwrap_or_else(|error| panic!("{spelling}: {error}"));
                assert_eq!(gpu.product.unwrap().id, product.id, "{spelling}");
            }
        }
        assert!(product.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    }
}

#[test]
fn every_architecture_name_leads_to_its_limits() {
    for target in Target::known().filter_map(Target::of) {
        let mut names = target.names.clone();
        names.push(target.compute_capability());
        for name in names {
            let gpu = Gpu::resolve(&name).unwrap();
            assert_eq!((gpu.target.as_ref(), gpu.name), (target, target.arch.to_string()));
            assert_eq!(gpu.product, None);
        }
    }
}

#[test]
fn names_are_read_as_people_write_them() {
    for (text, id) in [
        ("a100", "a100-sxm4-40gb"),
        ("h100-sxm5", "h100-sxm5"),
        ("H100 SXM", "h100-sxm5"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("4090", ""),
        ("Tesla T4", "t4"),
        ("rtx 4090 d", "rtx-4090-d"),
        ("l40", "l40"),
        ("gh2", "gh200"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
    ] {
        let found = Gpu::resolve(text).map(|gpu| gpu.product.unwrap().id.clone()).unwrap_or_default();
        assert_eq!(found, id, "{text}");
    }
}

#[test]
fn a_beginning_that_several_products_share_lists_them() {
    let Err(GpuError::Ambiguous { count, candidates, .. }) = Gpu::resolve("h10") else { panic!("not ambiguous") };
    assert_eq!((count, candidates.as_str()), (3, "h100-pcie, h100-sxm5, h100-nvl"));
}

#[test]
fn a_suffix_is_one_that_compilers_have() {
    for text in ["sm_75a", "compute_86a", "sm_89f", "sm_90f", "sm_35a"] {
        assert!(matches!(Gpu::resolve(text), Err(GpuError::NoTarget { .. })), "{text}");
    }
    for text in ["sm_90a", "sm_100a", "sm_100f", "sm_101a", "sm_103f", "sm_110a", "sm_120f", "compute_121a", "sm_75"] {
        assert!(Gpu::resolve(text).is_ok(), "{text}");
    }
}

#[test]
fn an_unknown_name_offers_the_nearest() {
    let Err(GpuError::Unknown { help, .. }) = Gpu::resolve("h1000") else { panic!("not unknown") };
    assert!(help.starts_with("did you mean `h100"), "{help}");
    for (text, meant) in [
        ("4090", "`rtx-4090` or `rtx-4090-d`?"),
        ("5090", "`rtx-5090`"),
        ("sm90", "`sm_90`?"),
        ("90", "`sm_90`?"),
        ("SM 9.0", "`sm_90`?"),
        ("90a", "`sm_90a`?"),
        ("cc-120", "`sm_120`?"),
    ] {
        let Err(GpuError::Unknown { help, .. }) = Gpu::resolve(text) else { panic!("{text} is not unknown") };
        assert!(help.starts_with(&format!("did you mean {meant}")), "{text}: {help}");
    }
    assert!(matches!(Gpu::resolve("sm_999"), Err(GpuError::UnknownArch { .. })));
    assert!(matches!(Gpu::resolve("no/such/file"), Err(GpuError::Unreadable { .. })));
    assert!(matches!(Gpu::resolve(""), Err(GpuError::Unknown { .. })));
}

#[test]
fn a_directory_is_no_device_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    assert!(matches!(Gpu::resolve(path.to_str().unwrap()), Err(GpuError::Unreadable { .. })));
}
