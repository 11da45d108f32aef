// expects: stopped
function f() {
    const kept = [];
    for (let i = 0; ; i++) kept.push(Symbol.for("s" + i));
}
