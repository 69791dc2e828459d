//! Hooks that are elsewhere call back by the place of a function in the program's table, which must be seen from there.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family.contains("wasm")) {
        println!("cargo::rustc-link-arg-bins=--export-table");
    }
}
