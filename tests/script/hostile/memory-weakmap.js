// expects: stopped
function f() {
    const w = new WeakMap(), kept = [];
    for (;;) {
        const o = {};
        w.set(o, kept);
        kept.push(o);
    }
}
