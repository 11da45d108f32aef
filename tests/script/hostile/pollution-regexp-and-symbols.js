// expects: done 1
function f() {
    RegExp.prototype.exec = () => { throw new Error("exec"); };
    Array.prototype[Symbol.iterator] = () => { throw new Error("iterate"); };
    Object.prototype[Symbol.toPrimitive] = () => { throw new Error("convert"); };
    __.response.setBody(1);
}
