import test from 'ava'
import { interpreterOf, type ScriptType, scriptFaults } from '../../../src/core/scripts/script-form.ts'

const good: readonly (readonly [ScriptType, string, options?: string[]])[] = [
  ['BASH', 'echo one\necho two\n'],
  ['BASH', 'echo no newline at the end'],
  ['BASH', '#!/bin/bash\ntrue'],
  ['BASH', '#!/bin/sh -e\ntrue', ['-e']],
  ['BASH', '#! /usr/bin/env bash\ntrue'],
  ['BASH', '#!/usr/bin/env -S bash -eu\ntrue', ['-eu']],
  ['BASH', '#!/bin/bash -euo pipefail\ntrue', ['-euo', 'pipefail']],
  ['BASH', '#!/bin/bash -e -o pipefail --norc\t-x\ntrue', ['-e', '-o', 'pipefail', '--norc', '-x']],
  ['BASH', '#!/bin/sh -\ntrue', []],
  ['BASH', '# a comment\n#!/usr/bin/python3\n'],
  ['BASH', '#!\ntrue'],
  ['BASH', "printf 'a\\r\\n'"],
  ['BASH', 'echo ü 😀 \ufeff'],
  ['PYTHON', 'print(1)\r\nprint(2)\r\n'],
  ['PYTHON', '\ufeffprint(1)'],
  ['PYTHON', '#!/usr/bin/python3 -I\r\nprint(1)', ['-I']],
  ['PYTHON', '\ufeff#!/usr/bin/env python3.11\nprint(1)'],
  ['POWERSHELL', '\ufeffWrite-Output 1\r\n'],
  ['POWERSHELL', '#!/usr/bin/env pwsh -NoProfile\nWrite-Output 1'],
]
for (const [type, content, options = []] of good)
  test(`${type} ${JSON.stringify(content)} is accepted unchanged, with the options ${JSON.stringify(options)}`, (t) => {
    t.deepEqual(scriptFaults(type, content), [])
    t.deepEqual(interpreterOf(type, content).options, options)
  })

const bad: readonly (readonly [ScriptType, string, says: RegExp])[] = [
  ['BASH', 'echo one\r\necho two\r\n', /^line 1 ends with CR LF/],
  ['BASH', 'echo one\necho two\r\n', /^line 2 ends with CR LF/],
  ['BASH', 'echo one\necho two\r', /^line 2 ends with CR LF/],
  ['BASH', '\ufeffecho one', /^begins with a byte order mark/],
  ['BASH', 'a\nb\0c', /^line 2 contains a NUL/],
  ['PYTHON', 'print("\0")', /^line 1 contains a NUL/],
  ['PYTHON', 'a\nb\n"\ud800"', /^line 3 contains an unpaired surrogate/],
  [
    'BASH',
    '#!/usr/bin/python3\nprint(1)',
    /#!\/usr\/bin\/python3, .* type is BASH.*give it the type PYTHON$/,
  ],
  ['BASH', '#!/usr/bin/env python3\nprint(1)', /give it the type PYTHON$/],
  ['PYTHON', '#!/bin/bash\ntrue', /type is PYTHON, which python3 runs: give it the type BASH$/],
  ['PYTHON', '#!/usr/bin/python2\nprint 1', /start python2 from a script of type BASH$/],
  ['BASH', '#!/usr/bin/perl\nprint 1', /start perl from a script of type BASH$/],
  ['BASH', '#!/usr/bin/env\ntrue', /start its interpreter from/],
  [
    'PYTHON',
    '#!/opt/venv/bin/python\nprint(1)',
    /start \/opt\/venv\/bin\/python from a script of type BASH$/,
  ],
  ['BASH', '#!/bin/bash -s\ntrue', /but -s is not supported/],
  ['BASH', '#!/bin/bash -ec true\n', /but -ec is not supported/],
  ['BASH', '#!/bin/bash --rcfile /tmp/x\n', /but --rcfile is not supported/],
  ['BASH', '#!/bin/bash -o\n', /but -o is not supported/],
  ['PYTHON', '#!/usr/bin/python3 -c pass\n', /but -c is not supported/],
  ['POWERSHELL', '#!/usr/bin/pwsh -Command\n', /but -Command is not supported/],
]
for (const [type, content, says] of bad)
  test(`${type} ${JSON.stringify(content)} is refused: ${says.source}`, (t) => {
    const [fault = '', ...others] = scriptFaults(type, content)
    t.regex(fault, says)
    t.deepEqual(others, [])
  })

test('all faults of a text are reported at once', (t) => {
  t.is(scriptFaults('BASH', '\ufeff#!/usr/bin/perl\r\n\0\ud800').length, 5)
})

test('options of an interpreter of another type are ignored', (t) => {
  t.deepEqual(interpreterOf('BASH', '#!/usr/bin/python3 -B\n'), { program: 'bash', options: [] })
})
