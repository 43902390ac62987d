import { readFileSync } from 'node:fs'
import test from 'ava'
import { kindOf, kinds, type Manifest } from '../../../src/cli/completion/kinds.ts'

const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest

/** Every option and argument without a closed set of values, named as in the table. */
const named = Object.values(commands).flatMap((command) => {
  const options = Object.values(command.flags).filter((flag) => flag.type === 'option')
  const args = Object.values(command.args).filter((arg) => arg.hidden !== true)
  return [
    ...options.map((flag) => ({ command, name: `--${flag.name}`, options: flag.options })),
    ...args.map((arg) => ({ command, name: arg.name, options: arg.options })),
  ].filter((each) => each.options === undefined)
})

test('every option and argument has a kind in the table', (t) => {
  for (const { command, name } of named)
    t.truthy(kindOf(command, name), `${command.id} ${name}: add it to kinds.ts`)
})

test('every entry of the table names an existing option or argument', (t) => {
  const there = new Set(named.flatMap(({ command, name }) => [name, `${command.id} ${name}`]))
  t.deepEqual(
    Object.keys(kinds).filter((name) => !there.has(name)),
    [],
  )
})
