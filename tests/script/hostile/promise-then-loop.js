// expects: stopped
function f() {
    const again = () => Promise.resolve().then(again);
    again();
}
