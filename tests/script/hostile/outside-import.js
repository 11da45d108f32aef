// expects: fault import
async function f() {
    await import("fs");
}
