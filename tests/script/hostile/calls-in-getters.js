// expects: done 1
function f() {
    __.createDocument(__.getSelfLink(), { get x() { return __.createDocument(__.getSelfLink(), { y: 1 }); } });
    __.response.setBody(1);
}
