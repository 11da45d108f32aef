// expects: stopped
function f() {
    /(x+x+)+\1y/.test("x".repeat(60));
}
