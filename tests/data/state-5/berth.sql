PRAGMA user_version = 5;
BEGIN TRANSACTION;
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    at_ns   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    job     INTEGER,
    text    TEXT NOT NULL           -- JSON, one line
);
INSERT INTO "event" VALUES(1,1749999989759230661,'submitted',1,'{"seq":1,"at":1749999989.759230661,"kind":"submitted","job":1,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(2,1749999989759230661,'placed',1,'{"seq":2,"at":1749999989.759230661,"kind":"placed","job":1,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(3,1749999989771552569,'started',1,'{"seq":3,"at":1749999989.771552569,"kind":"started","job":1,"attempt":0}');
INSERT INTO "event" VALUES(4,1749999990773039246,'loaded',1,'{"seq":4,"at":1749999990.773039246,"kind":"loaded","job":1,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(5,1749999990773039908,'progress',1,'{"seq":5,"at":1749999990.773039908,"kind":"progress","job":1,"attempt":0,"step":1,"loss":0.80000000000000004}');
INSERT INTO "event" VALUES(6,1749999991773366246,'progress',1,'{"seq":6,"at":1749999991.773366246,"kind":"progress","job":1,"attempt":0,"step":2,"steps_per_s":0.99956766100000005,"loss":0.69999999999999996}');
INSERT INTO "event" VALUES(7,1749999992774973898,'progress',1,'{"seq":7,"at":1749999992.774973898,"kind":"progress","job":1,"attempt":0,"step":3,"steps_per_s":0.99896960800000001,"loss":0.59999999999999998}');
INSERT INTO "event" VALUES(8,1749999992783072615,'finished',1,'{"seq":8,"at":1749999992.783072615,"kind":"finished","job":1,"attempt":0,"exit_code":0,"step":3,"steps_per_s":0.99896960800000001}');
INSERT INTO "event" VALUES(9,1749999992876883188,'submitted',2,'{"seq":9,"at":1749999992.876883188,"kind":"submitted","job":2,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(10,1749999992876883188,'placed',2,'{"seq":10,"at":1749999992.876883188,"kind":"placed","job":2,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(11,1749999992892127788,'started',2,'{"seq":11,"at":1749999992.892127788,"kind":"started","job":2,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(12,1749999992892133198,'lost',2,'{"seq":12,"at":1749999992.892133198,"kind":"lost","job":2,"attempt":0,"step":0,"why":"exit status 3"}');
INSERT INTO "event" VALUES(13,1749999992892133198,'placed',2,'{"seq":13,"at":1749999992.892133198,"kind":"placed","job":2,"attempt":1,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(14,1749999992904755502,'started',2,'{"seq":14,"at":1749999992.904755502,"kind":"started","job":2,"attempt":1,"loaded":true}');
INSERT INTO "event" VALUES(15,1749999992915421392,'failed',2,'{"seq":15,"at":1749999992.915421392,"kind":"failed","job":2,"attempt":1,"exit_code":3,"step":0,"reached":0.56963820000000007,"why":"exit status 3"}');
INSERT INTO "event" VALUES(16,1749999992993602737,'submitted',3,'{"seq":16,"at":1749999992.993602737,"kind":"submitted","job":3,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(17,1749999992993602737,'placed',3,'{"seq":17,"at":1749999992.993602737,"kind":"placed","job":3,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(18,1749999993015855692,'started',3,'{"seq":18,"at":1749999993.015855692,"kind":"started","job":3,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(19,1749999993123148418,'cancelled',3,'{"seq":19,"at":1749999993.123148418,"kind":"cancelled","job":3,"attempt":0,"why":"cancelled"}');
INSERT INTO "event" VALUES(20,1749999993123148418,'recalled',3,'{"seq":20,"at":1749999993.123148418,"kind":"recalled","job":3,"attempt":0,"rule":"cancel","grace_s":0}');
INSERT INTO "event" VALUES(21,1749999993126643189,'failed',3,'{"seq":21,"at":1749999993.126643189,"kind":"failed","job":3,"attempt":0,"exit_code":143,"step":0,"reached":0.11079104400000001,"why":"cancelled"}');
INSERT INTO "event" VALUES(22,1749999993235355240,'rejected',4,'{"seq":22,"at":1749999993.235355240,"kind":"rejected","job":4,"class":"be","gpus":99,"why":"asks for 99 accelerators; no type has so many in a shape that fits"}');
INSERT INTO "event" VALUES(23,1749999993243173585,'submitted',5,'{"seq":23,"at":1749999993.243173585,"kind":"submitted","job":5,"class":"be","gpus":2}');
INSERT INTO "event" VALUES(24,1749999993243173585,'placed',5,'{"seq":24,"at":1749999993.243173585,"kind":"placed","job":5,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(25,1749999993258640628,'started',5,'{"seq":25,"at":1749999993.258640628,"kind":"started","job":5,"attempt":0}');
INSERT INTO "event" VALUES(26,1749999993363193652,'submitted',6,'{"seq":26,"at":1749999993.363193652,"kind":"submitted","job":6,"class":"be","gpus":2}');
INSERT INTO "event" VALUES(27,1749999993363193652,'placed',6,'{"seq":27,"at":1749999993.363193652,"kind":"placed","job":6,"attempt":0,"seats":[{"node":0,"gpus":[2,3],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(28,1749999993382582902,'started',6,'{"seq":28,"at":1749999993.382582902,"kind":"started","job":6,"attempt":0}');
INSERT INTO "event" VALUES(29,1749999993480772982,'submitted',7,'{"seq":29,"at":1749999993.480772982,"kind":"submitted","job":7,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(30,1749999993480786857,'submitted',8,'{"seq":30,"at":1749999993.480786857,"kind":"submitted","job":8,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(31,1749999993480795544,'submitted',9,'{"seq":31,"at":1749999993.480795544,"kind":"submitted","job":9,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(32,1749999993491006766,'released',7,'{"seq":32,"at":1749999993.491006766,"kind":"released","job":7}');
INSERT INTO "event" VALUES(33,1749999993491006766,'placed',7,'{"seq":33,"at":1749999993.491006766,"kind":"placed","job":7,"attempt":0,"seats":[{"node":0,"gpus":[],"cpu_milli":1000,"mem_mib":1}],"spread":true}');
INSERT INTO "event" VALUES(34,1749999993539031442,'started',7,'{"seq":34,"at":1749999993.539031442,"kind":"started","job":7,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(35,1749999993539036351,'finished',7,'{"seq":35,"at":1749999993.539036351,"kind":"finished","job":7,"attempt":0,"exit_code":0,"step":3.3552e-05}');
INSERT INTO "event" VALUES(36,1749999993551586862,'released',8,'{"seq":36,"at":1749999993.551586862,"kind":"released","job":8}');
INSERT INTO "event" VALUES(37,1749999993551586862,'placed',8,'{"seq":37,"at":1749999993.551586862,"kind":"placed","job":8,"attempt":0,"seats":[{"node":0,"gpus":[],"cpu_milli":1000,"mem_mib":1}],"spread":true}');
INSERT INTO "event" VALUES(38,1749999993583012855,'started',8,'{"seq":38,"at":1749999993.583012855,"kind":"started","job":8,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(39,1749999993612390012,'submitted',10,'{"seq":39,"at":1749999993.612390012,"kind":"submitted","job":10,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(40,1749999994259123926,'loaded',5,'{"seq":40,"at":1749999994.259123926,"kind":"loaded","job":5,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(41,1749999994259124467,'progress',5,'{"seq":41,"at":1749999994.259124467,"kind":"progress","job":5,"attempt":0,"step":1.000612458,"steps_per_s":1,"loss":0.88}');
INSERT INTO "event" VALUES(42,1749999994383308170,'loaded',6,'{"seq":42,"at":1749999994.383308170,"kind":"loaded","job":6,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(43,1749999994383308631,'progress',6,'{"seq":43,"at":1749999994.383308631,"kind":"progress","job":6,"attempt":0,"step":2,"loss":0.88}');
INSERT INTO "event" VALUES(44,1749999995259850057,'progress',5,'{"seq":44,"at":1749999995.259850057,"kind":"progress","job":5,"attempt":0,"step":2.0013198640000001,"steps_per_s":1,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(45,1749999995383880325,'progress',6,'{"seq":45,"at":1749999995.383880325,"kind":"progress","job":6,"attempt":0,"step":4,"steps_per_s":1.9988082300000001,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(46,1749999995624708739,'submitted',11,'{"seq":46,"at":1749999995.624708739,"kind":"submitted","job":11,"class":"te","gpus":2}');
INSERT INTO "event" VALUES(47,1749999995624708739,'recalled',5,'{"seq":47,"at":1749999995.624708739,"kind":"recalled","job":5,"attempt":0,"rule":"trial","grace_s":5,"for":11}');
INSERT INTO "event" VALUES(48,1749999995624708739,'placed',11,'{"seq":48,"at":1749999995.624708739,"kind":"placed","job":11,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}],"after":[{"job":5,"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(49,1749999995635566987,'stopped',5,'{"seq":49,"at":1749999995.635566987,"kind":"stopped","job":5,"attempt":0,"exit_code":85,"clean":true,"step":2.3770147830000004}');
INSERT INTO "event" VALUES(50,1749999995647498564,'started',11,'{"seq":50,"at":1749999995.647498564,"kind":"started","job":11,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(51,1749999996384427806,'progress',6,'{"seq":51,"at":1749999996.384427806,"kind":"progress","job":6,"attempt":0,"step":6,"steps_per_s":1.9989178400000001,"loss":0.83999999999999997}');
INSERT INTO "event" VALUES(52,1749999996650555721,'finished',11,'{"seq":52,"at":1749999996.650555721,"kind":"finished","job":11,"attempt":0,"exit_code":0,"step":1.0030017330000001}');
INSERT INTO "event" VALUES(53,1749999996650555721,'placed',5,'{"seq":53,"at":1749999996.650555721,"kind":"placed","job":5,"attempt":1,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(54,1749999996671895475,'started',5,'{"seq":54,"at":1749999996.671895475,"kind":"started","job":5,"attempt":1}');
INSERT INTO "event" VALUES(55,1749999997386387646,'progress',6,'{"seq":55,"at":1749999997.386387646,"kind":"progress","job":6,"attempt":0,"step":8,"steps_per_s":1.9984888199999999,"loss":0.81999999999999995}');
INSERT INTO "event" VALUES(56,1749999997673279229,'loaded',5,'{"seq":56,"at":1749999997.673279229,"kind":"loaded","job":5,"attempt":1,"loaded":true}');
INSERT INTO "event" VALUES(57,1749999997673279760,'progress',5,'{"seq":57,"at":1749999997.673279760,"kind":"progress","job":5,"attempt":1,"step":3.3785778110000004,"steps_per_s":1,"loss":0.88}');
INSERT INTO "event" VALUES(58,1749999998391077689,'progress',6,'{"seq":58,"at":1749999998.391077689,"kind":"progress","job":6,"attempt":0,"step":10,"steps_per_s":1.99596372,"loss":0.80000000000000004}');
INSERT INTO "event" VALUES(59,1749999998674340643,'progress',5,'{"seq":59,"at":1749999998.674340643,"kind":"progress","job":5,"attempt":1,"step":4.3797286510000006,"steps_per_s":1,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(60,1749999998763299738,'submitted',12,'{"seq":60,"at":1749999998.763299738,"kind":"submitted","job":12,"class":"te","gpus":2}');
INSERT INTO "event" VALUES(61,1749999998763299738,'recalled',5,'{"seq":61,"at":1749999998.763299738,"kind":"recalled","job":5,"attempt":1,"rule":"trial","grace_s":5,"for":12}');
INSERT INTO "event" VALUES(62,1749999998763299738,'placed',12,'{"seq":62,"at":1749999998.763299738,"kind":"placed","job":12,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}],"after":[{"job":5,"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(63,1749999998767193642,'stopped',5,'{"seq":63,"at":1749999998.767193642,"kind":"stopped","job":5,"attempt":1,"exit_code":85,"clean":true,"step":4.4725389400000006}');
INSERT INTO "event" VALUES(64,1749999998791258513,'started',12,'{"seq":64,"at":1749999998.791258513,"kind":"started","job":12,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(65,1749999998876544273,'submitted',13,'{"seq":65,"at":1749999998.876544273,"kind":"submitted","job":13,"class":"be","gpus":4}');
INSERT INTO "event" VALUES(66,1749999998886120773,'submitted',14,'{"seq":66,"at":1749999998.886120773,"kind":"submitted","job":14,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(67,1749999998894679737,'submitted',15,'{"seq":67,"at":1749999998.894679737,"kind":"submitted","job":15,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(68,1749999999392327940,'progress',6,'{"seq":68,"at":1749999999.392327940,"kind":"progress","job":6,"attempt":0,"step":12,"steps_per_s":1.99632645,"loss":0.78000000000000003}');
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "fact" VALUES('fake_gpus','v100:4');
INSERT INTO "fact" VALUES('policy','fitgpp,max_preemptions=0');
CREATE TABLE job (
    id          INTEGER PRIMARY KEY,
    uid         INTEGER NOT NULL,
    user        TEXT NOT NULL,
    name        TEXT,
    class       TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    gpus        INTEGER NOT NULL,
    types       TEXT,
    entity      TEXT,
    array_id    INTEGER,
    array_index INTEGER,
    placement   TEXT,               -- JSON; where it is, or was last
    attempt     INTEGER,
    preemptions INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,
    exit_code   INTEGER,
    submit_ns   INTEGER NOT NULL,
    start_ns    INTEGER,
    end_ns      INTEGER,
    waited_ns   INTEGER NOT NULL DEFAULT 0,
    served_ns   INTEGER NOT NULL DEFAULT 0,
    step        REAL,
    steps       REAL,
    rate_per_s  REAL,
    loss        REAL,
    held        INTEGER NOT NULL DEFAULT 0, -- by its owner
    request     TEXT NOT NULL       -- JSON, as it was accepted
);
INSERT INTO "job" VALUES(1,1000,'ada','completed','be','COMPLETED',NULL,1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',0,0,0,0,1749999989759112020,1749999989771552569,1749999992783072615,12321908,3011520046,3.0,3.0,NULL,0.6,0,'{"name":"completed","pattern":"step ([0-9]+) loss ([0-9.]+)","steps":3.0,"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(2,1000,'ada','failed','be','FAILED','exit status 3',1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',1,0,1,3,1749999992876771280,1749999992892127788,1749999992915421392,27866904,10671300,0.0,NULL,NULL,NULL,0,'{"name":"failed","retries":1,"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(3,1000,'ada','cancelled','be','CANCELLED','cancelled',1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',0,0,0,143,1749999992993527085,1749999993015855692,1749999993126643189,22252955,110787497,0.107292726,NULL,NULL,NULL,0,'{"name":"cancelled","gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(4,1000,'ada','rejected','be','REJECTED','asks for 99 accelerators; no type has so many in a shape that fits',99,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999993235270772,NULL,1749999993235270772,0,0,NULL,NULL,NULL,NULL,0,'{"command":[],"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(5,1000,'ada','preempted','be','PENDING',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',1,2,0,NULL,1749999993243116528,1749999993258640628,NULL,1051795531,8944449052,4.47253894000000062902e+00,NULL,NULL,0.86,0,'{"name":"preempted","grace_s":5.0,"pause_s":1.0,"pattern":"step ([0-9]+) loss ([0-9.]+)","gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(6,1000,'ada','running','be','RUNNING',NULL,2,NULL,'vision',NULL,NULL,'[{"node":"node","type":"v100","gpus":[2,3]}]',0,0,0,NULL,1749999993363130614,1749999993382582902,NULL,19389250,12019490076,12.0,1000.0,1.99632645,0.78,0,'{"name":"running","grace_s":3600.0,"entity":"vision","weight":2.0,"steps":1000.0,"pattern":"step ([0-9]+) loss ([0-9.]+)","gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(7,1000,'ada','array','be','COMPLETED',NULL,0,NULL,NULL,7,0,'[{"node":"node","type":"v100","gpus":[]}]',0,0,0,0,1749999993480692161,1749999993539031442,1749999993539036351,58258460,0,3.3552e-05,NULL,NULL,NULL,0,'{"name":"array","mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":0,"array_limit":1}');
INSERT INTO "job" VALUES(8,1000,'ada','array','be','RUNNING',NULL,0,NULL,NULL,7,1,'[{"node":"node","type":"v100","gpus":[]}]',0,0,0,NULL,1749999993480774154,1749999993583012855,NULL,102225998,0,0.0,NULL,1.0,NULL,0,'{"name":"array","mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":1,"array_limit":1}');
INSERT INTO "job" VALUES(9,1000,'ada','array','be','HELD',NULL,0,NULL,NULL,7,2,NULL,NULL,0,0,NULL,1749999993480787058,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"array","mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":2,"array_limit":1}');
INSERT INTO "job" VALUES(10,1000,'ada','dependent','be','HELD',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999993612333718,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"dependent","dependency":[{"kind":"afterok","id":8}],"mem_bytes":1048576,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(11,1000,'ada','trial-ended','te','COMPLETED',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',0,0,0,0,1749999995624631044,1749999995647498564,1749999996650555721,22789825,2006114314,1.003001733,NULL,NULL,NULL,0,'{"name":"trial-ended","class":"te","gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(12,1000,'ada','trial','te','RUNNING',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',0,0,0,NULL,1749999998763137355,1749999998791258513,NULL,27958775,0,0.0,NULL,1.0,NULL,0,'{"name":"trial","class":"te","gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(13,1000,'ada','waiting','be','PENDING',NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998875962890,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"waiting","min_gpus":2,"deadline":1930062600.0,"time_limit_s":7200.0,"gpus":4,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(14,1000,'ada','held','be','HELD',NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998885916722,NULL,NULL,0,0,0.0,NULL,NULL,NULL,1,'{"name":"held","hold":true,"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(15,1000,'ada','later','be','HELD',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998894481107,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"later","begin":1930062600.0,"mem_bytes":1048576,"cwd":"/tmp/berth-state"}');
CREATE TABLE launch (id INTEGER PRIMARY KEY, env TEXT, script TEXT);
INSERT INTO "launch" VALUES(1,NULL,'"#!/bin/sh\nfor i in 1 2 3; do echo step $i loss 0.$((9-i)); sleep 1; done\n"');
INSERT INTO "launch" VALUES(2,NULL,'"#!/bin/sh\nexit 3\n"');
INSERT INTO "launch" VALUES(3,NULL,'"#!/bin/sh\nsleep 1000\n"');
INSERT INTO "launch" VALUES(5,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\ntrap ''exit 85'' TERM; while :; do i=$((i+1)); echo \"step $i loss 0.$((90-i))\"; sleep 0.5; done\n"');
INSERT INTO "launch" VALUES(6,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\nwhile :; do i=$((i+1)); echo \"step $i loss 0.$((90-i))\"; sleep 0.5; done\n"');
INSERT INTO "launch" VALUES(7,NULL,'"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n"');
INSERT INTO "launch" VALUES(8,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n"');
INSERT INTO "launch" VALUES(9,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n"');
INSERT INTO "launch" VALUES(10,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\ntrue\n"');
INSERT INTO "launch" VALUES(11,NULL,'"#!/bin/sh\nsleep 1\n"');
INSERT INTO "launch" VALUES(12,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\nsleep 1000\n"');
INSERT INTO "launch" VALUES(13,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\ntrue\n"');
INSERT INTO "launch" VALUES(14,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\ntrue\n"');
INSERT INTO "launch" VALUES(15,'{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"}','"#!/bin/sh\ntrue\n"');
CREATE TABLE ledger (
    at_ns       INTEGER NOT NULL,
    victim      INTEGER NOT NULL,
    number      INTEGER NOT NULL,   -- of the victim's preemptions: 1, 2, …
    newcomer    INTEGER,
    rule        TEXT NOT NULL,
    gpus        INTEGER NOT NULL,
    predicted_cost_ns INTEGER NOT NULL,
    predicted_wait_ns INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL DEFAULT 0,
    load_ns     INTEGER NOT NULL DEFAULT 0,
    redo_ns     INTEGER NOT NULL DEFAULT 0,
    steps       REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    started_ns  INTEGER,            -- of the newcomer
    shared_by   INTEGER NOT NULL DEFAULT 1,
    wait_saved_s REAL,              -- known when the victim has ended
    open        INTEGER NOT NULL,   -- 2: the victim has still to load again
    PRIMARY KEY (victim, number)
) WITHOUT ROWID;
INSERT INTO "ledger" VALUES(1749999995624708739,5,1,11,'trial',2,2000000000,0,21716496,2002767508,0,2.366178546,1.0,1749999995647498564,1,NULL,1);
INSERT INTO "ledger" VALUES(1749999998763299738,5,2,12,'trial',2,2000000000,0,7787808,0,0,4.46868774600000051577e+00,1.0,1749999998791258513,1,NULL,2);
CREATE TABLE live (
    id          INTEGER PRIMARY KEY REFERENCES job (id),
    phase       TEXT NOT NULL,
    class       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,   -- -1: never started
    leaving     INTEGER NOT NULL,
    steps       REAL NOT NULL,
    steps_total REAL NOT NULL,
    step_s      REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    anchor_ns   INTEGER NOT NULL,
    loss        REAL,
    since_ns    INTEGER NOT NULL,
    first_start_ns INTEGER NOT NULL,
    waited_ns   INTEGER NOT NULL,
    served_ns   INTEGER NOT NULL,
    recalled_ns INTEGER NOT NULL,
    preemptions INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL,
    load_ns     INTEGER NOT NULL,
    grace_ns    INTEGER NOT NULL,
    weight      REAL NOT NULL,
    deadline_ns INTEGER NOT NULL,
    level       INTEGER NOT NULL,
    steps_max   INTEGER NOT NULL,
    spread      INTEGER NOT NULL,
    beside      INTEGER,            -- shares the accelerators of this job
    next_beside INTEGER,            -- will share those of this job
    seats       TEXT,               -- node:gpus:cpu:mem …, gpus as bits
    next        TEXT,               -- promised seats
    promises    TEXT,               -- victim:node:gpus:cpu:mem …
    served      TEXT                -- GPU-time by type, type:ns …
);
INSERT INTO "live" VALUES(5,'waiting','be',1,0,4.47253894000000062902e+00,0.0,1.0,0.0,1749999998767193642,0.86,1749999998767193642,1749999993258640628,1051795531,8944449052,1749999998763299738,2,0,1000000000,0,5000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,'v100:8944449052');
INSERT INTO "live" VALUES(6,'running','be',0,0,12.0,1000.0,5.0092007747530475914e-01,1.99632645,1749999999392327940,0.78,1749999993382582902,1749999993382582902,19389250,0,0,0,0,0,0,3600000000000,2.0,0,0,0,0,NULL,NULL,'0:c:0:0',NULL,NULL,NULL);
INSERT INTO "live" VALUES(8,'running','be',0,0,0.0,0.0,1.0,1.0,1749999993583012855,NULL,1749999993583012855,1749999993583012855,102225998,0,0,0,0,0,0,60000000000,1.0,0,0,0,1,NULL,NULL,'0:0:1000:1',NULL,NULL,NULL);
INSERT INTO "live" VALUES(9,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999993480795544,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(10,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999993612390012,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(12,'running','te',0,0,0.0,0.0,1.0,1.0,1749999998791258513,NULL,1749999998791258513,1749999998791258513,27958775,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,'0:3:0:0',NULL,NULL,NULL);
INSERT INTO "live" VALUES(13,'waiting','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998876544273,-1,0,0,0,0,0,0,0,60000000000,1.0,1930062600000000000,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(14,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998886120773,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(15,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998894679737,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE submission (uid INTEGER NOT NULL, key TEXT NOT NULL, at_ns INTEGER NOT NULL, hash INTEGER NOT NULL, first_id INTEGER NOT NULL, count INTEGER NOT NULL, several INTEGER NOT NULL, PRIMARY KEY (uid, key)) WITHOUT ROWID;
INSERT INTO "submission" VALUES(1000,'11570fa8f65a7519944e487b39214d94',1749999998875877831,-8782121692888112156,13,1,0);
INSERT INTO "submission" VALUES(1000,'18aea0265c88dc7ecf2c9f4ac036e0cd',1749999993242999571,-5865330821963046511,5,1,0);
INSERT INTO "submission" VALUES(1000,'333a45487bb1d31fb3d664b14c2eaa2a',1749999989758831717,-5810097402241506760,1,1,0);
INSERT INTO "submission" VALUES(1000,'41df41b0490b5b7e0d6088a968e26fc8',1749999998885831023,4502714947911674437,14,1,0);
INSERT INTO "submission" VALUES(1000,'698bbb2138326a3f44b4a77472470dc5',1749999993363016091,-2327944164982634539,6,1,0);
INSERT INTO "submission" VALUES(1000,'8267690c4e99525f9fe31793b97820ba',1749999993612264449,-3299436025495674752,10,1,0);
INSERT INTO "submission" VALUES(1000,'8b65be621cf11135d3ec2af3cd52b86b',1749999998763055002,2594110096541770003,12,1,0);
INSERT INTO "submission" VALUES(1000,'9115fc9d8dc086e798137e16de08dbb5',1749999998894392683,2200429567611092627,15,1,0);
INSERT INTO "submission" VALUES(1000,'cc8e6aa68c7d6e6eb685d32d437b8f24',1749999993480588658,-7721770740553765435,7,3,1);
INSERT INTO "submission" VALUES(1000,'d0bcd218ca05de04555085cb7a545018',1749999992876683316,-5623764260032540296,2,1,0);
INSERT INTO "submission" VALUES(1000,'deb5dcae0f2f7651a1f2725fb02e743c',1749999993235159195,-6831543346588076562,4,1,0);
INSERT INTO "submission" VALUES(1000,'f04cd668462734d4d3fbbc8791efb63c',1749999995624546286,4224457304277526188,11,1,0);
INSERT INTO "submission" VALUES(1000,'f92ceaf4ad86614710bd5c69b00c875b',1749999992993445043,3071053971807816622,3,1,0);
CREATE TABLE token (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL, scope TEXT NOT NULL, digest TEXT NOT NULL, created_ns INTEGER NOT NULL, expires_ns INTEGER NOT NULL, used_ns INTEGER NOT NULL, revoked_ns INTEGER NOT NULL);
CREATE TABLE usage (uid INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, reduced INTEGER NOT NULL DEFAULT 0);
INSERT INTO "usage" VALUES(1000,17739,0);
CREATE INDEX event_by_job ON event (job, seq) WHERE job IS NOT NULL;
CREATE INDEX event_progress ON event (at_ns) WHERE kind = 'progress';
CREATE INDEX job_live ON job (id) WHERE end_ns IS NULL;
CREATE INDEX job_by_submit ON job (submit_ns);
CREATE INDEX job_by_array ON job (array_id) WHERE array_id IS NOT NULL;
CREATE INDEX ledger_open ON ledger (victim) WHERE open;
CREATE INDEX job_ended ON job (uid, id) WHERE end_ns IS NOT NULL;
CREATE TRIGGER usage_add AFTER INSERT ON job BEGIN INSERT INTO usage (uid, bytes) VALUES (NEW.uid, 1024 + length(CAST(NEW.request AS BLOB))) ON CONFLICT (uid) DO UPDATE SET bytes = bytes + excluded.bytes; END;
CREATE TRIGGER usage_change AFTER UPDATE OF request ON job BEGIN UPDATE usage SET bytes = bytes + length(CAST(NEW.request AS BLOB)) - length(CAST(OLD.request AS BLOB)) WHERE uid = NEW.uid; END;
CREATE TRIGGER usage_drop AFTER DELETE ON job BEGIN UPDATE usage SET bytes = bytes - 1024 - length(CAST(OLD.request AS BLOB)) WHERE uid = OLD.uid; END;
CREATE TRIGGER usage_launch_add AFTER INSERT ON launch BEGIN UPDATE usage SET bytes = bytes + coalesce(length(CAST(NEW.env AS BLOB)), 0) + coalesce(length(CAST(NEW.script AS BLOB)), 0) WHERE uid = (SELECT uid FROM job WHERE id = NEW.id); END;
CREATE TRIGGER usage_launch_change AFTER UPDATE ON launch BEGIN UPDATE usage SET bytes = bytes + coalesce(length(CAST(NEW.env AS BLOB)), 0) + coalesce(length(CAST(NEW.script AS BLOB)), 0) - coalesce(length(CAST(OLD.env AS BLOB)), 0) - coalesce(length(CAST(OLD.script AS BLOB)), 0) WHERE uid = (SELECT uid FROM job WHERE id = NEW.id); END;
CREATE TRIGGER usage_launch_drop AFTER DELETE ON launch BEGIN UPDATE usage SET bytes = bytes - coalesce(length(CAST(OLD.env AS BLOB)), 0) - coalesce(length(CAST(OLD.script AS BLOB)), 0) WHERE uid = (SELECT uid FROM job WHERE id = OLD.id); END;
COMMIT;
