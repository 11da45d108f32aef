// expects: stopped
function f() {
    const o = { set x(v) { this.x = v; for (;;); } };
    for (;;) {
        try { o.x = 1; } catch (e) {}
    }
}
