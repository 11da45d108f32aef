// expects: stopped
function f() {
    const kept = [];
    for (let i = 0; ; i++) kept.push({ ["p" + i]: 1, ["q" + i]: 2 });
}
