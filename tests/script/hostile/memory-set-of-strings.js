// expects: stopped
function f() {
    const s = new Set();
    for (let i = 0; ; i++) s.add("key" + i);
}
