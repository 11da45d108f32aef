// expects: stopped
function f() {
    const kept = [];
    for (let i = 0; ; i++) kept.push(new RegExp("a{" + (i % 1000) + "}b" + i + "|" + "c".repeat(1000)));
}
