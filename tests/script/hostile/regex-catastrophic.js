// expects: stopped
function f() {
    /(a+)+b/.test("a".repeat(60));
}
