// expects: fault
function f() {
    const o = { toString() { return "" + this; } };
    "" + o;
}
