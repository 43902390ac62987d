import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { utf8Text } from '../../../src/cli/input/stdin.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('UTF-8 text is read byte for byte, including a byte order mark', (t) => {
  const text = '\ufeffé😀\r\n\0'
  t.is(utf8Text(Buffer.from(text), 'it'), text)
  t.is(utf8Text(Buffer.alloc(0), 'it'), '')
})

for (const [bytes, line] of [
  [[0xe9], 1],
  [[0x61, 0x0a, 0x61, 0xff, 0x0a, 0xff], 2],
  [[0x0a, 0x0a, 0xc3], 3],
] as const)
  test(`bytes ${bytes.join(' ')} are refused, and the error names line ${line}`, (t) => {
    const error = t.throws(() => utf8Text(Buffer.from(bytes), 'deploy.sh'))
    t.regex(error.message, new RegExp(`^deploy.sh is not UTF-8: see line ${line}$`))
  })

test('text with a UTF-16 byte order mark is reported as UTF-16', (t) => {
  const bytes = Buffer.concat([Buffer.from('fffe', 'hex'), Buffer.from('é', 'utf16le')])
  const error = t.throws(() => utf8Text(bytes, 'it'), { instanceOf: RsmError })
  t.regex(error.hint ?? '', /-f UTF-16 /)
})

test('a script that is not UTF-8 is not sent: rsm exits with 2 and names the line', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const file = join(temporaryDirectory(t), 'latin.sh')
  writeFileSync(file, Buffer.from('echo one\necho caf\xe9\n', 'latin1'))
  const added = await rsm(['scripts', 'add', 'latin', file])
  t.is(added.exit, 2, added.stderr)
  t.regex(added.stderr, /latin\.sh is not UTF-8: see line 2/)
  t.is((await server.data('GET', '/api/scripts')).totalElements, 0)
})
