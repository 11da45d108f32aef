// expects: fault nested too deeply
function f() {
    let a = [];
    for (let i = 0; i < 1000; i++) a = [a];
    __.createDocument(__.getSelfLink(), { a });
}
