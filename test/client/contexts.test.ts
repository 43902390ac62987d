import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Contexts } from '../../src/client/contexts.ts'
import { normalUrl } from '../../src/client/server-url.ts'
import { RsmError } from '../../src/core/errors.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('contexts and tokens are readable by their owner only', (t) => {
  const home = temporaryDirectory(t)
  const contexts = new Contexts({ XDG_CONFIG_HOME: home })
  contexts.save('prod', { url: 'https://rsm.example', username: 'ann' }, 'rsm_ses_1')
  t.is(mode(contexts.directory), '700')
  t.is(mode(join(contexts.directory, 'config.json')), '600')
  t.is(mode(join(contexts.directory, 'tokens.json')), '600')
  t.is(contexts.directory, join(home, 'rsm'))
})

test('a stored token goes to its own URL only', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('prod', { url: 'https://rsm.example' }, 'rsm_ses_1')
  t.is(contexts.choose({}, {}).token, 'rsm_ses_1')
  t.is(contexts.choose({ url: 'https://RSM.example/' }, {}).token, 'rsm_ses_1')
  t.is(contexts.choose({ url: 'https://other.example' }, {}).token, undefined)
  t.is(contexts.choose({ url: 'http://rsm.example' }, {}).token, undefined)
  // A context that was pointed elsewhere by hand does not take the token along.
  const file = join(contexts.directory, 'config.json')
  writeFileSync(
    file,
    JSON.stringify({ current: 'prod', contexts: { prod: { url: 'https://evil.example' } } }),
  )
  t.is(contexts.choose({}, {}).token, undefined)
})

test('flags win over the environment, and that over the current context', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('a', { url: 'http://a' }, 'token-a')
  contexts.save('b', { url: 'http://b' }, 'token-b')
  t.is(contexts.choose({}, {}).url, 'http://b')
  t.is(contexts.choose({}, { RSM_CONTEXT: 'a' }).token, 'token-a')
  t.is(contexts.choose({}, { RSM_URL: 'http://c', RSM_CONTEXT: 'a' }).url, 'http://c')
  t.is(contexts.choose({ context: 'b' }, { RSM_URL: 'http://c' }).url, 'http://b')
  t.is(contexts.choose({ url: 'http://d' }, { RSM_TOKEN: 'env' }).token, 'env')
  const file = join(contexts.directory, 'token')
  writeFileSync(file, 'from-file\n')
  t.is(contexts.choose({ url: 'http://d', tokenFile: file }, { RSM_TOKEN: 'env' }).token, 'from-file')
  t.is(contexts.choose({}, { RSM_TOKEN_FILE: file }).token, 'from-file')
  t.is(contexts.choose({}, { RSM_URL: '', RSM_TOKEN: '' }).token, 'token-b')
})

test('without a server the error names the two ways to one', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  const error = t.throws(() => contexts.choose({}, {}), { instanceOf: RsmError })
  t.is(error.code, 'unauthenticated')
  t.regex(error.hint ?? '', /rsm login URL.*rsm quickstart/)
})

test('an unknown context names the nearest', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('production', { url: 'http://a' }, undefined)
  t.throws(() => contexts.use('prodution'), { message: /did you mean production/ })
  t.throws(() => contexts.choose({ context: 'x' }, {}), { message: /no such context: x/ })
})

test('a removed context takes its token along', (t) => {
  const contexts = new Contexts({ XDG_CONFIG_HOME: temporaryDirectory(t) })
  contexts.save('a', { url: 'http://a' }, 'token')
  contexts.remove('a')
  t.deepEqual(contexts.list(), { current: null, contexts: {} })
  contexts.save('a', { url: 'http://a' }, undefined)
  t.is(contexts.choose({}, {}).token, undefined)
})

test('URLs are http or https and hold no password', (t) => {
  t.is(normalUrl('HTTP://Host:18080/'), 'http://host:18080')
  t.is(normalUrl('https://host/rsm/'), 'https://host/rsm')
  for (const bad of ['host:18080', 'ftp://host', 'http://user:pw@host', 'nonsense'])
    t.throws(() => normalUrl(bad), { instanceOf: RsmError })
})
