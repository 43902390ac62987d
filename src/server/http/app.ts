import { randomInt } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { AnySchema } from 'ajv'
import Fastify, {
  type FastifyContextConfig,
  type FastifyError,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
  type preHandlerHookHandler,
  type preParsingHookHandler,
} from 'fastify'
import { RsmError } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import { type Clients, createClients } from '../access/client-address.ts'
import type { Credentials } from '../access/credentials.ts'
import type { HttpMetrics } from '../metrics/http.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import { type Allow, guard, type NoLongerKept } from './auth.ts'
import { createBodyRoom, smallBody } from './body-room.ts'
import { answerRaw, asRsmError, Envelope, sendError } from './failures.ts'
import { jsonParser } from './json-body.ts'
import { createKnownPaths } from './known-paths.ts'
import { createListener, type Listener } from './listener.ts'
import { securityHeaders } from './security-headers.ts'
import { bodyAjv, queryValidator, validationError, validator } from './validation.ts'

/** Bodies of requests (contract §1). */
const bodyLimit = 2 * 1024 * 1024
/** Methods that a path answers with 405 where it has them not; any other is no method of ours: 404. */
const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestId = /^[A-Za-z0-9._-]{1,64}$/

interface AppDependencies {
  store: Store
  credentials: Credentials
  /** Credentials of routes with `lastKnown`; `credentials` by default. */
  lastKnown?: Credentials
  log: Log
  /** False while starting or stopping: then everything but health and ready answers 503. */
  accepting(): boolean
  /** Hears of every request that has been answered. */
  answered: HttpMetrics['answered']
  /** Never, by default. */
  noLongerKept?: NoLongerKept
  /** Plain HTTP by default. */
  listener?: Listener
  /** No proxy is trusted by default. */
  clients?: Clients
  /** Whether answers tell browsers to insist on TLS; false by default. */
  hsts?: boolean
}

/** The HTTP application, without listening: tests inject requests into it. `register` adds the routes. */
export function buildApp(deps: AppDependencies, register: (app: AppInstance) => void) {
  const headersOf = securityHeaders(deps.hsts === true)
  const clients = deps.clients ?? createClients([])
  const app = newApp(deps.listener ?? createListener(null), headersOf)
  const paths = createKnownPaths()
  const bodies = createBodyRoom()
  const levelOf = createRequestLevel()
  app.setValidatorCompiler(({ schema, httpPart }) =>
    httpPart === 'querystring'
      ? queryValidator(schema as AnySchema)
      : validator(bodyAjv, schema as AnySchema),
  )
  app.setSchemaErrorFormatter((errors) => validationError(errors as Parameters<typeof validationError>[0]))
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    ['application/json', 'application/merge-patch+json'],
    { parseAs: 'buffer', bodyLimit },
    jsonParser(app.getDefaultJsonParser('error', 'error')),
  )

  app.addContentTypeParser('application/octet-stream', (request, payload, done) => {
    if (request.routeOptions.config.operation?.bytes) return done(null, payload)
    done(new RsmError('media_type', 'The body has to be application/json'))
  })

  const note = (request: FastifyRequest, { statusCode: status }: FastifyReply) => {
    const { id, client: ip, method, route, startedAt, caller } = request
    const elapsed = performance.now() - startedAt
    deps.answered({ method, route, status, seconds: elapsed / 1000 })
    const ms = Math.round(elapsed * 10) / 10
    const user = caller === undefined ? undefined : caller.type === 'user' ? caller.username : nameOf(caller)
    deps.log[levelOf(route, status)]({ requestId: id, user, ip, method, route, status, ms }, 'request')
  }
  const checkAccepting = () => {
    if (!deps.accepting())
      throw new RsmError('unavailable', 'The server is starting or shutting down', { retryAfter: 5 })
  }
  app.addHook('onRoute', (route) => {
    const { config } = route
    if (config?.allow === undefined) throw new Error(`route ${route.url} does not say who may call it`)
    paths.add(route.url, route.method)
    if (config.operation?.created) route.preHandler = answerCreated
    const enter = entrance(route.url, config)
    route.onRequest = [enter, ...[route.onRequest ?? []].flat()]
    if (config.allow.open) route.bodyLimit = smallBody
    // What is taken as bytes is in no memory, and has bounds of its own.
    if (!config.operation?.bytes)
      route.preParsing = [takeBody(route.bodyLimit ?? bodyLimit), ...[route.preParsing ?? []].flat()]
    if (changesWhatLasts(config, route.method))
      route.preValidation = [
        guard(deps.store, deps.credentials, { allow: config.allow }),
        ...[route.preValidation ?? []].flat(),
      ]
    // To hear that an answer has left costs a heartbeat as much as its body; that it is about to leave costs next to
    // nothing. Files, which end long after they began, are noted when they have.
    const ofAgents = isOfAgents(route.url) && config.operation?.media === undefined
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      (request, reply, _payload, done) => {
        if (ofAgents) note(request, reply)
        if (!deps.accepting()) reply.header('connection', 'close')
        done()
      },
    ]
    if (!ofAgents)
      route.onResponse = [
        ...[route.onResponse ?? []].flat(),
        (request, reply, done) => {
          note(request, reply)
          done()
        },
      ]
  })
  /** After the entrance: it has to be known who sends the body (contract §1: 401 first). */
  const takeBody =
    (limit: number): preParsingHookHandler =>
    (request, reply, _payload, done) => {
      try {
        done(
          null,
          bodies.enter(request.raw, () => nameOf(request.caller), limit),
        )
      } catch (error) {
        // What has not come yet is not read either.
        reply.header('connection', 'close')
        done(error as Error)
      }
    }
  /** Before all other hooks of a route, so that nothing is told to strangers. Every heartbeat pays for it: keep it cheap. */
  function entrance(url: string, config: FastifyContextConfig): onRequestHookHandler {
    const credentials = (config.allow?.lastKnown && deps.lastKnown) || deps.credentials
    const admit = guard(deps.store, credentials, config, deps.noLongerKept)
    const isAlways = config.operation?.always === true
    // Answers to a POST are never cached (RFC 9111 §3).
    const headers = { ...headersOf(url), ...(!isOfAgents(url) && { 'cache-control': 'no-store' }) }
    return (request, reply, done) => {
      reply.header('x-request-id', request.id)
      reply.headers(headers)
      // A body may be left out where nothing is required; where something is, every missing field is named.
      request.body = {}
      request.startedAt = performance.now()
      request.route = url
      request.client = clients.addressOf(request.raw)
      clients.check(request.raw)
      if (!isAlways) checkAccepting()
      admit(request, reply, done)
    }
  }
  app.decorateRequest('route', 'unknown')
  app.decorateRequest('client', '')
  app.decorateRequest('startedAt', 0)
  const enterNowhere = entrance('unknown', {})
  /** A path that there is, by a method that it has not: 405 and `Allow`, to any caller. */
  const enterOtherwise = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    const path = methods.has(request.method) ? paths.find(request.url) : undefined
    if (path === undefined) return enterNowhere.call(app, request, reply, done)
    entrance(path.url, {}).call(app, request, reply, (error?: Error) => {
      if (error) return done(error)
      const allow = [...path.methods].filter((method) => method !== 'HEAD').join(', ')
      reply.header('allow', allow)
      done(new RsmError('method_not_allowed', `${request.method} is not allowed here; allowed: ${allow}`))
    })
  }
  app.addHook('onRequest', (request, reply, done) => {
    // Routes have entrances of their own; this one is for paths that do not exist.
    if (!request.is404) return done()
    reply.raw.once('finish', () => note(request, reply))
    enterOtherwise(request, reply, done)
  })
  app.addHook('preSerialization', (_request, reply, payload, done) => {
    if (payload instanceof Envelope) return done(null, payload)
    const code = reply.statusCode
    done(null, { code, message: code === 201 ? 'Created' : 'OK', data: payload })
  })
  app.setErrorHandler((thrown: FastifyError | RsmError, request, reply) => {
    const error = asRsmError(thrown, request.routeOptions)
    // Of bytes that are refused the rest is not waited for: it may be a whole file.
    if (request.routeOptions.config.operation?.bytes && !request.raw.complete)
      reply.header('connection', 'close')
    if (error.code === 'internal')
      deps.log.error({ requestId: request.id, err: error.cause ?? error }, 'request failed')
    return sendError(reply, error)
  })
  app.setNotFoundHandler(async (request: FastifyRequest) => {
    throw new RsmError('not_found', `No such path: ${request.url.split('?')[0] ?? ''}`)
  })
  register(app)
  return app
}

/** Names a caller in the log, and as the owner of a body. */
function nameOf(caller: Caller | undefined): string {
  if (caller === undefined) return 'anyone'
  return caller.type === 'agent' ? `agent ${caller.agentId}` : `${caller.type} ${caller.id}`
}

/**
 * Whether callers are judged again once the body is there: who sends it slowly may have lost the right meanwhile. What
 * agents report is spared: it costs the most, and their next report would replace it.
 */
const changesWhatLasts = ({ operation }: FastifyContextConfig, method: string | string[]) =>
  operation !== undefined && !['GET', 'HEAD'].includes(String(method)) && !isReport(operation.allow)

/** Whether only agents may send it. */
const isReport = ({ agent, enrollment }: Allow) => agent === true && enrollment !== true

/** What creates a record answers 201 (contract §1). */
const answerCreated: preHandlerHookHandler = (_request, reply, done) => {
  reply.code(201)
  done()
}

/** Status and message of requests that Node rejects while parsing them. */
const clientFaults: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
}

function newApp(listener: Listener, headersOf: ReturnType<typeof securityHeaders>) {
  // Names a request in the log and to its caller: of this process, and a count; nothing hangs on its being hard to
  // guess. Short, because V8 copies the parts of longer texts only when they are read, which costs more.
  const process = randomInt(36 ** 5, 36 ** 6).toString(36)
  let requests = 0
  return Fastify({
    logger: false,
    bodyLimit,
    serverFactory: (handler) => listener.create(handler),
    forceCloseConnections: 'idle',
    // Our own hook refuses while the server stops: in the envelope, and not those who ask how it is.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    // Longer than any request line that Node takes: an id that is too long is one that names nothing (404).
    routerOptions: { maxParamLength: 65_536 },
    genReqId: (request: IncomingMessage) => {
      const given = request.headers['x-request-id']
      return typeof given === 'string' && requestId.test(given) ? given : process + (++requests).toString(36)
    },
    // A path that can't be decoded: no hook has run for it.
    frameworkErrors: (error, request, reply) => {
      const status = error.statusCode ?? 400
      const headers = { 'x-request-id': request.id, ...headersOf(request.url) }
      void (reply as FastifyReply)
        .code(status)
        .headers(headers)
        .send({ code: status, message: error.message })
    },
    clientErrorHandler(error, socket) {
      if (!socket.writable) return
      const [code, message] = clientFaults[error.code] ?? [400, 'The request is not well-formed HTTP']
      answerRaw(socket, code, message)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
}

export type AppInstance = ReturnType<typeof newApp>

type Level = 'debug' | 'info' | 'warn'

/**
 * Log level of each request: refusals and failures are for the operator; the audit log has what changes something. A check of
 * readiness is logged only when its answer changes.
 */
export function createRequestLevel(): (route: string, status: number) => Level {
  let wasReady: boolean | null = null
  return (route, status) => {
    if (route === readyPath) {
      const isReady = status < 400
      if (isReady === wasReady) return 'debug'
      wasReady = isReady
      if (isReady) return 'info'
    }
    if (status >= 500) return 'warn'
    return status < 400 || isOfAgents(route) ? 'debug' : 'info'
  }
}

const readyPath = '/api/ready'

/** Whether agents call it, which they do every few seconds. */
const isOfAgents = (route: string): boolean => route.startsWith('/api/agent/')
