import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import type { ScriptType } from '../../src/core/scripts/script-form.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { entries, finished } from '../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../helpers/servers/server.ts'

async function oneHost(t: ExecutionContext) {
  const server = await startTestServer(t)
  const { hostId } = await realAgent(t, server)
  return { server, hostId }
}

interface Order {
  script: { type?: ScriptType; content: string } | { scriptId: number }
  [option: string]: unknown
}

async function run(server: TestServer, hostId: number, { script, ...options }: Order) {
  const what = 'scriptId' in script ? script : { script }
  const { taskId } = await server.data('POST', '/api/tasks', {
    ...what,
    ...options,
    target: { hostIds: [hostId] },
    queueSeconds: 60,
  })
  const { results } = await finished(server, taskId)
  const output = await entries(server, taskId)
  return { taskId, result: results[0], stdout: output.map(({ data }) => data).join('') }
}

const forms: readonly (readonly [
  what: string,
  type: ScriptType,
  content: string,
  stdout: string,
  exit?: number,
])[] = [
  ['without a final newline', 'BASH', 'echo one\necho two', 'one\ntwo\n'],
  ['in Python with CR LF', 'PYTHON', 'print(1)\r\nif True:\r\n  print(2)\r\n', '1\n2\n'],
  ['in Python with a byte order mark', 'PYTHON', '\ufeffprint("ü")\n', 'ü\n'],
  ['with -e in its first line', 'BASH', '#!/bin/bash -e\necho one\nfalse\necho two\n', 'one\n', 1],
  [
    'with -euo pipefail in its first line',
    'BASH',
    '#!/bin/bash -euo pipefail\nfalse | true\necho on\n',
    '',
    1,
  ],
  ['without -e in its first line', 'BASH', '#!/bin/sh\nfalse\necho on\n', 'on\n'],
  [
    'with an option for Python in its first line',
    'PYTHON',
    '#!/usr/bin/env python3 -O\nassert False\nprint(1)',
    '1\n',
  ],
  ['with CR inside a line', 'BASH', "printf 'a\rb' | wc -c", '3\n'],
]

test('a script runs byte for byte as given, and is shown with its sha256', async (t) => {
  const { server, hostId } = await oneHost(t)
  for (const [what, type, content, stdout, exitCode = 0] of forms) {
    const ran = await run(server, hostId, { script: { type, content } })
    t.is(ran.result?.exitCode, exitCode, what)
    t.is(ran.stdout, stdout, what)
    const shown = await server.data('GET', `/api/tasks/${ran.taskId}/script`)
    t.is(shown.content, content, what)
    t.is(shown.sha256, createHash('sha256').update(content).digest('hex'), what)
  }
})

test('a script that would not run as it reads is a 400 with line and remedy, for tasks and stored scripts', async (t) => {
  const { server, hostId } = await oneHost(t)
  const target = { hostIds: [hostId] }
  for (const [content, says] of [
    ['echo 1\r\n', /line 1 ends with CR LF/],
    ['\ufeffecho 1\n', /byte order mark/],
    ['echo \0', /NUL/],
    ['#!/usr/bin/python3\n', /type PYTHON/],
  ] as const) {
    const adHoc = await server.api('POST', '/api/tasks', { script: { content }, target })
    t.is(adHoc.status, 400)
    t.is(adHoc.body.errors?.[0]?.field, 'script.content')
    t.regex(adHoc.body.errors?.[0]?.message ?? '', says)
    const stored = await server.api('POST', '/api/scripts', { name: 'bad', type: 'BASH', content })
    t.is(stored.status, 400)
    t.is(stored.body.errors?.[0]?.field, 'content')
    t.regex(stored.body.errors?.[0]?.message ?? '', says)
  }
  const script = await server.data('POST', '/api/scripts', {
    name: 'windows',
    type: 'PYTHON',
    content: 'print(1)\r\n',
  })
  const patched = await server.api('PATCH', `/api/scripts/${script.id}`, { type: 'BASH' })
  t.is(patched.status, 400)
  t.is(patched.body.errors?.[0]?.field, 'type')
  t.is((await server.data('PATCH', `/api/scripts/${script.id}`, { description: 'x' })).version, 2)
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})

test('a body that is not UTF-8 is a 400, because its script would run altered', async (t) => {
  const { server } = await oneHost(t)
  const text = JSON.stringify({ name: 'latin', type: 'BASH', content: 'echo caf?' })
  const bytes = Buffer.from(text)
  bytes[bytes.indexOf('?')] = 0xe9
  const answer = await fetch(`${server.url}/api/scripts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: bytes,
  })
  t.is(answer.status, 400)
  t.regex(await answer.text(), /not valid UTF-8/)
})

test('the largest script runs with the largest parameters, in a frame far over 1 MiB', async (t) => {
  const { server, hostId } = await oneHost(t)
  const mostBytes = 1024 * 1024
  const head = 'echo "$A" | wc -c; echo "${#A9}"; exit 7\n'
  const content = `${head}${'#"\\\n'.repeat((mostBytes - head.length) / 4 - 1)}`.padEnd(mostBytes, '#')
  const script = await server.data('POST', '/api/scripts', { name: 'large', type: 'BASH', content })
  const params = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`A${at}`, '"\n'.repeat(50_000)]))
  const ran = await run(server, hostId, { script: { scriptId: script.id }, params })
  t.like(ran.result, { status: 'FAILED', exitCode: 7, error: null })
  t.is(ran.stdout, '1\n100000\n')
  const over = await server.api('POST', '/api/scripts', {
    name: 'more',
    type: 'BASH',
    content: `${content}#`,
  })
  t.is(over.status, 400)
})

test('a task with the largest parameter starts, one byte more is a 400 that names the parameter', async (t) => {
  const { server, hostId } = await oneHost(t)
  const most = 'ü'.repeat(65_534)
  const content = 'printf %s "$A" | wc -c; printf %s "$B"'
  const ran = await run(server, hostId, {
    script: { content },
    params: { A: `${most}x`, B: 'two\nlines\r\n$(id) `id`' },
  })
  t.like(ran.result, { status: 'SUCCESS', error: null })
  t.is(ran.stdout, '131069\ntwo\nlines\r\n$(id) `id`')
  const target = { hostIds: [hostId] }
  for (const [params, field] of [
    [{ A: `${most}xx` }, 'params.A'],
    [{ A: 'a\0b' }, 'params.A'],
    [{ A: '\ud800' }, 'params.A'],
    [{ 'A-B': '1' }, 'params.A-B'],
    [{ '': '1' }, 'params.'],
    [{ '1A': '1' }, 'params.1A'],
    [{ 'BASH_FUNC_x%%': '() { id; }' }, 'params.BASH_FUNC_x%%'],
    [{ LD_PRELOAD: '/x' }, 'params.LD_PRELOAD'],
    [{ A: 1 }, 'params.A'],
    [{ A: null }, 'params.A'],
  ] as const) {
    const answer = await server.api('POST', '/api/tasks', { script: { content }, target, params })
    t.is(answer.status, 400, JSON.stringify(params).slice(0, 80))
    t.is(answer.body.errors?.[0]?.field, field)
  }
})
