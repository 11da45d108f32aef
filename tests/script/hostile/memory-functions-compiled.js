// expects: stopped
function f() {
    const kept = [];
    for (let i = 0; ; i++) kept.push(new Function("a", "return a + " + i + ";".repeat(i % 100)));
}
