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
import { scriptCalls, taskCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { RouteDependencies } from './dependencies.ts'
import { idempotencyHeader, serve } from './serve.ts'

const noun = { noun: 'scripts', tag: 'scripts', read: { users: 'read' }, write: { users: 'change' } } as const

export function scriptRoutes(app: AppInstance, { services: { scripts, tasks } }: RouteDependencies): void {
  const calls = { ...scriptCalls, execute: taskCalls.executeScript }
  const service = {
    ...scripts,
    version(caller: UserCaller, id: number, version: string) {
      if (!/^[1-9]\d{0,9}$/.test(version))
        throw new RsmError('not_found', `Script ${id} has no version ${version}`)
      return scripts.version(caller, id, Number(version))
    },
    execute: tasks.executeScript,
  }
  serve(app, calls, service, noun, {
    list: {
      id: 'listScripts',
      summary: 'List scripts, without their texts unless name asks for one',
      query: ScriptQuery,
      answer: PageOf(ScriptSummary),
    },
    create: {
      id: 'createScript',
      summary: 'Create a script',
      body: ScriptCreate,
      answer: Script,
      created: true,
      errors: ['conflict'],
    },
    get: { id: 'getScript', summary: 'Read a script', answer: Script },
    update: {
      id: 'updateScript',
      summary: 'Change a script: this makes a new version',
      body: ScriptPatch,
      answer: Script,
      errors: ['conflict'],
    },
    remove: {
      id: 'deleteScript',
      summary: 'Delete a script and its versions; tasks keep their own copy',
      answer: IdOnly,
    },
    versions: {
      id: 'listScriptVersions',
      summary: 'List the versions of a script, without their text',
      query: PageQuery,
      answer: PageOf(ScriptVersionSummary),
    },
    version: {
      id: 'getScriptVersion',
      summary: 'Read one version of a script',
      answer: ScriptVersion,
    },
    execute: {
      id: 'executeScript',
      summary: 'Run a stored script on hosts',
      allow: { users: 'execute' },
      body: ScriptExecute,
      answer: ExecutionAnswer,
      errors: ['conflict', 'gone'],
      headers: idempotencyHeader,
      audit: { action: 'task.create', object: 'task' },
    },
  })
}
