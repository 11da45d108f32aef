// expects: any
function f() {
    new RegExp("(".repeat(100000) + ")".repeat(100000)).test("a");
}
