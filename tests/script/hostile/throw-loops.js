// expects: stopped
function f() {
    throw Object.assign(new Error("x"), { name: { toString() { for (;;); } } });
}
