import test, { type Implementation, type TestFn } from 'ava'

const noHook = () => undefined

/** Skips every test, with the reason in its title. */
export function skipped(why: string): TestFn {
  const skip = (title: string, implementation: Implementation<[]>) =>
    test.skip(`${title} (skipped: ${why})`, implementation)
  const after = Object.assign(noHook, { always: noHook })
  return Object.assign(skip, { serial: skip, after }) as unknown as TestFn
}
