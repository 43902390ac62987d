import { RsmError } from '../../core/errors.ts'
import { IdOnly, PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import {
  Script,
  ScriptCreate,
  ScriptPatch,
  ScriptQuery,
  ScriptSummary,
  ScriptVersion,
  ScriptVersionSummary,
} from '../../core/protocol/http/scripts.ts'
import { ExecutionAnswer, ScriptExecute } from '../../core/protocol/http/tasks.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, idempotencyKeyOf, starterOf } from './starting.ts'

const read = { users: 'read' } as const
const change = { users: 'change' } as const
const execute = { users: 'execute' } as const
const exists = 'scripts' as const
const tag = 'scripts' as const

function versionOf(request: { params: unknown }): number {
  const { id, version } = request.params as { id: string; version: string }
  if (!/^[1-9]\d{0,9}$/.test(version))
    throw new RsmError('not_found', `Script ${id} has no version ${version}`)
  return Number(version)
}

export function scriptRoutes(app: AppInstance, { services: { scripts, tasks } }: RouteDependencies): void {
  app.get(
    '/api/scripts',
    operation({
      id: 'listScripts',
      tag,
      summary: 'List scripts, without their texts unless name asks for one',
      allow: read,
      query: ScriptQuery,
      answer: PageOf(ScriptSummary),
    }),
    (request) => scripts.list(userOf(request), request.query),
  )
  app.post(
    '/api/scripts',
    operation({
      id: 'createScript',
      tag,
      summary: 'Create a script',
      allow: change,
      body: ScriptCreate,
      answer: Script,
      created: true,
      errors: ['conflict'],
      audit: { action: 'script.create', object: 'script' },
    }),
    (request) => scripts.create(userOf(request), request.body),
  )
  app.get(
    '/api/scripts/:id',
    operation({ id: 'getScript', tag, summary: 'Read a script', allow: read, exists, answer: Script }),
    (request) => scripts.get(userOf(request), idOf(request)),
  )
  app.patch(
    '/api/scripts/:id',
    operation({
      id: 'updateScript',
      tag,
      summary: 'Change a script: this makes a new version',
      allow: change,
      exists,
      body: ScriptPatch,
      answer: Script,
      errors: ['conflict'],
      audit: { action: 'script.update', object: 'script' },
    }),
    (request) => scripts.update(userOf(request), idOf(request), request.body),
  )
  app.delete(
    '/api/scripts/:id',
    operation({
      id: 'deleteScript',
      tag,
      summary: 'Delete a script and its versions; tasks keep their own copy',
      allow: change,
      exists,
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'script.delete', object: 'script' },
    }),
    (request) => scripts.remove(userOf(request), idOf(request)),
  )
  app.get(
    '/api/scripts/:id/versions',
    operation({
      id: 'listScriptVersions',
      tag,
      summary: 'List the versions of a script, without their text',
      allow: read,
      exists,
      query: PageQuery,
      answer: PageOf(ScriptVersionSummary),
    }),
    (request) => scripts.versions(userOf(request), idOf(request), request.query),
  )
  app.get(
    '/api/scripts/:id/versions/:version',
    operation({
      id: 'getScriptVersion',
      tag,
      summary: 'Read a script as it was in one of its versions',
      allow: read,
      exists,
      answer: ScriptVersion,
    }),
    (request) => scripts.version(userOf(request), idOf(request), versionOf(request)),
  )
  app.post(
    '/api/scripts/:id/execute',
    operation({
      id: 'executeScript',
      tag,
      summary: 'Run a stored script on hosts',
      allow: execute,
      exists,
      body: ScriptExecute,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
      audit: { action: 'task.create', object: 'task' },
    }),
    (request) =>
      tasks.executeScript(starterOf(request), idOf(request), request.body, idempotencyKeyOf(request)),
  )
}
