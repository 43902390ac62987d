import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FlagInput } from '@oclif/core/interfaces'
import { parse } from '@oclif/core/parser'
import test from 'ava'
import { anyCase } from '../../../src/cli/flags/checks.ts'
import { fromEnvironment, type Variables } from '../../../src/cli/flags/environment.ts'

type Flag = FlagInput[string]

/** Every flag that a variable can set, of all commands. */
async function settableFlags(): Promise<{ id: string; name: string; variable: string; flag: Flag }[]> {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: object }
  const found = Object.keys(commands).map(async (id) => {
    const file = pathToFileURL(resolve('dist/src/commands', `${id.replaceAll(':', '/')}.js`)).href
    const { default: Command } = (await import(file)) as { default: { flags?: FlagInput } }
    return Object.entries(Command.flags ?? {}).flatMap(([name, flag]) =>
      flag.env === undefined ? [] : [{ id, name, variable: flag.env, flag }],
    )
  })
  return (await Promise.all(found)).flat()
}

/** Valid values of a flag; several if it may be repeated. */
function samples(flag: Flag): string[] {
  if (flag.type === 'boolean') return []
  if (flag.multiple === true) return ['webroot', 'nobody']
  if (flag.options !== undefined) return [flag.options[0]?.toLowerCase() ?? '']
  return ['max' in flag ? '17' : 'one,two']
}

const { env } = process

async function parsed(name: string, flag: Flag, argv: string[]): Promise<[value: unknown, Variables]> {
  const variables: Variables = new Map()
  const { flags } = await parse(argv, { flags: fromEnvironment(anyCase({ [name]: flag }), variables) })
  return [flags[name], variables]
}

test.serial(
  'a variable sets the same value as the typed flag, for every flag that has a variable',
  async (t) => {
    const flags = await settableFlags()
    t.true(flags.length > 30)
    t.true(flags.some(({ flag }) => flag.type === 'option' && flag.multiple === true))
    t.teardown(() => {
      for (const { variable } of flags) delete env[variable]
    })
    for (const { id, name, variable, flag } of flags) {
      const about = `${id} --${name}`
      const typed =
        flag.type === 'boolean' ? [`--${name}`] : samples(flag).flatMap((word) => [`--${name}`, word])
      env[variable] = ' '
      const [none] = await parsed(name, { ...flag, required: false }, [])
      t.is(none, flag.default, about)
      const [asTyped] = await parsed(name, flag, typed)
      env[variable] = flag.type === 'boolean' ? 'on\r' : ` ${samples(flag).join(',')}\r\n`
      const [asSet, variables] = await parsed(name, flag, [])
      t.deepEqual(asSet, asTyped, about)
      t.is(Array.isArray(asSet), flag.type === 'option' && flag.multiple === true, about)
      t.is(variables.get(name), variable, about)
      // A typed value takes precedence, and the variable is then not recorded.
      env[variable] = flag.type === 'boolean' ? 'off' : '1'
      t.deepEqual(await parsed(name, flag, typed), [asTyped, new Map()], about)
    }
  },
)

test.serial(
  'a list in a variable may have spaces and empty items; a switch accepts only words for yes and no',
  async (t) => {
    const flags = await settableFlags()
    const named = (wanted: string) => {
      const found = flags.find(({ name }) => name === wanted)
      if (found === undefined) throw new Error(`no flag ${wanted}`)
      return found
    }
    const users = named('allow-run-as')
    const terminals = named('no-terminal')
    t.teardown(() => {
      delete env[users.variable]
      delete env[terminals.variable]
    })
    env[users.variable] = ' deploy , www-data,, '
    t.deepEqual((await parsed(users.name, users.flag, []))[0], ['deploy', 'www-data'])
    for (const [word, meant] of [
      ['0', false],
      ['False', false],
      ['off', false],
      ['YES', true],
    ] as const) {
      env[terminals.variable] = word
      t.is((await parsed(terminals.name, terminals.flag, []))[0], meant, word)
    }
    env[terminals.variable] = 'ja'
    await t.throwsAsync(parsed(terminals.name, terminals.flag, []), { message: /takes yes or no .*, not ja/ })
  },
)

test.serial('a server started inside a script ignores RSM_HOST, the name of the script’s host', async (t) => {
  const flags = await settableFlags()
  const host = flags.find(({ id, name }) => id === 'server:start' && name === 'host')?.flag
  if (host === undefined) throw new Error('no flag host')
  t.teardown(() => {
    for (const name of ['RSM_HOST', 'RSM_LISTEN_HOST', 'RSM_TASK_ID']) delete env[name]
  })
  const value = async () => (await parsed('host', host, []))[0]
  env['RSM_HOST'] = 'web1'
  t.is(await value(), 'web1')
  env['RSM_TASK_ID'] = '01J'
  t.is(await value(), '127.0.0.1')
  env['RSM_LISTEN_HOST'] = '10.0.0.1'
  t.is(await value(), '10.0.0.1')
  delete env['RSM_TASK_ID']
  t.is(await value(), '10.0.0.1')
})
