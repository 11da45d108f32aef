// expects: stopped
function f() {
    const kept = [];
    for (let i = 0; ; i++) kept.push(String(i).padStart(1e6, "x"));
}
