// expects: stopped
function f() {
    const again = () => { Promise.resolve().then(again); Promise.reject(1).catch(again); };
    again();
}
