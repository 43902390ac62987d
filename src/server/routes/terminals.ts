import { PageOf } from '../../core/protocol/http/common.ts'
import {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalEnded,
  TerminalQuery,
  TerminalTicket,
  TerminalTicketCreate,
} from '../../core/protocol/http/terminals.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { operation, sessionIdOf } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const execute = { users: 'execute' } as const
const exists = 'terminals' as const
const tag = 'terminals' as const

export function terminalRoutes(app: AppInstance, { services: { terminals } }: RouteDependencies): void {
  app.get(
    '/api/terminals',
    operation({
      id: 'listTerminals',
      tag,
      summary: "List one's own terminal sessions, newest first; an ADMIN's list has everyone's",
      allow: execute,
      query: TerminalQuery,
      answer: PageOf(Terminal),
    }),
    (request) => terminals.list(userOf(request), request.query),
  )
  app.post(
    '/api/terminals',
    operation({
      id: 'openTerminal',
      tag,
      summary: 'Open a terminal on a host; its WebSocket is at `path`',
      allow: execute,
      body: TerminalCreate,
      answer: TerminalCreated,
      created: true,
      errors: ['conflict'],
      audit: { action: 'terminal.open', object: 'terminal' },
    }),
    (request) => terminals.create(userOf(request), request.body),
  )
  app.get(
    '/api/terminals/:sessionId',
    operation({
      id: 'getTerminal',
      tag,
      summary: 'Read a terminal session',
      allow: execute,
      exists,
      answer: Terminal,
    }),
    (request) => terminals.get(userOf(request), sessionIdOf(request)),
  )
  app.delete(
    '/api/terminals/:sessionId',
    operation({
      id: 'endTerminal',
      tag,
      summary: 'End a terminal session, with its shell and all that it started',
      allow: execute,
      exists,
      answer: TerminalEnded,
      usesReserve: true,
      audit: { action: 'terminal.end', object: 'terminal' },
    }),
    (request) => terminals.remove(userOf(request), sessionIdOf(request)),
  )
  app.post(
    '/api/terminals/:sessionId/ticket',
    operation({
      id: 'createTerminalTicket',
      tag,
      summary: 'A ticket with which a browser attaches to a session, once',
      allow: execute,
      exists,
      body: TerminalTicketCreate,
      answer: TerminalTicket,
      created: true,
      errors: ['conflict'],
      audit: { action: 'terminal.ticket', object: 'terminal' },
    }),
    (request) => terminals.ticket(userOf(request), sessionIdOf(request), request.body),
  )
  app.get(
    '/api/terminals/:sessionId/recording',
    operation({
      id: 'getTerminalRecording',
      tag,
      summary: "The recording of a session that has ended, or of one's own",
      allow: execute,
      exists,
      media: {
        'application/x-asciicast': {
          holds: 'asciicast v2: a header, then an event a line. Input is never recorded.',
          example: '{"version":2,"width":80,"height":24}\n[0.120000, "o", "$ "]\n',
        },
      },
      errors: ['conflict'],
      audit: { action: 'terminal.recording', object: 'terminal' },
    }),
    async (request, reply) => {
      const stream = await terminals.recording(userOf(request), sessionIdOf(request))
      return reply.type('application/x-asciicast').send(stream)
    },
  )
}
