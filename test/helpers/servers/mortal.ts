/** Wraps the ports of a server: after `kill` no call answers, not even one in progress. */
export function mortal<T extends object>(parts: T): { parts: T; kill: () => void } {
  let isKilled = false
  const never = new Promise<never>(() => undefined)
  const call = (method: (...given: unknown[]) => unknown, self: object, given: unknown[]): unknown => {
    if (isKilled) return never
    // Hints have no effect either once the process is gone.
    const heard = given.map((one) =>
      typeof one === 'function' ? (...told: unknown[]) => (isKilled ? never : one(...told)) : one,
    )
    const answer = method.apply(self, heard)
    return answer instanceof Promise ? answer.then((value) => (isKilled ? never : value)) : answer
  }
  const wrap = <P extends object>(part: P): P =>
    new Proxy(part, {
      get(target, name) {
        const value = Reflect.get(target, name, target)
        return typeof value === 'function'
          ? (...given: unknown[]) => call(value as (...given: unknown[]) => unknown, target, given)
          : value
      },
    })
  const wrapped = Object.entries(parts).map(([name, part]) => [
    name,
    typeof part === 'object' && part !== null ? wrap(part as object) : part,
  ])
  return {
    parts: Object.fromEntries(wrapped) as T,
    kill() {
      isKilled = true
    },
  }
}
