// expects: any
function f() {
    const again = () => { for (let i = 0; i < 1e5; i++); __.createDocument(__.getSelfLink(), { x: 1 }, again); };
    again();
}
