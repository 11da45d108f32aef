// expects: fault too large
function f() {
    getContext().getResponse().setBody("x".repeat(5 * 1024 * 1024));
}
