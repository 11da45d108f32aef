// expects: stopped
function f() {
    /^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(200));
}
