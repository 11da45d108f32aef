// expects: fault has to be a function
({ a: 1 })
