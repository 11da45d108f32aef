// expects: stopped
function f() {
    function* numbers() {
        for (let i = 0; ; i++) yield i;
    }
    for (const n of numbers());
}
