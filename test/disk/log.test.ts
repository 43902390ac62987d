import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test from 'ava'

const run = promisify(execFile)
const from = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

/** Lines of a log of this level, from the stderr of a separate process. */
async function logged(level: string, code: string) {
  const program = `
    const { createLog, markLogged } = await import(${from('disk/log.js')})
    const { RsmError } = await import(${from('core/errors.js')})
    const log = createLog('${level}')
    const away = new RsmError('unavailable', 'the store is unavailable', { cause: new Error('cut') })
    ${code}`
  const { stderr } = await run(process.execPath, ['--input-type=module', '--eval', program])
  const lines = stderr.split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as { msg: string; at?: string; err: { stack?: string } })
}

test('a store outage is logged as a sentence, an unexpected error with its stack', async (t) => {
  const [away, bug, conflict] = await logged(
    'INFO',
    `log.warn({ err: away, at: 'relay' }, 'lost')
    log.warn({ err: new TypeError('no function') }, 'a bug')
    log.warn({ err: new RsmError('conflict', 'it is taken') }, 'taken')`,
  )
  t.deepEqual(away?.err as object, { type: 'RsmError', message: 'the store is unavailable' })
  t.is(away?.at, 'relay')
  t.regex(bug?.err.stack ?? '', /^TypeError: no function\n/)
  t.regex(conflict?.err.stack ?? '', /^RsmError: it is taken\n/)
})

test('a DEBUG log has stacks of store outages, and errors that are already logged', async (t) => {
  const code = `log.debug({ err: away }, 'first')
    log.warn({ err: markLogged(away) }, 'second')`
  const lines = await logged('DEBUG', code)
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['first', 'second'],
  )
  for (const { err } of lines) t.regex(err.stack ?? '', /the store is unavailable/)
  t.deepEqual(await logged('INFO', code), [])
})
