// expects: stopped
function f() {
    const thenable = { then(go) { go(thenable); } };
    Promise.resolve(thenable);
}
