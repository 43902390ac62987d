import test from 'ava'
import { scriptsContract } from '../../contracts/scripts.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

scriptsContract(test, 'on the store,', servicesOnStore)
