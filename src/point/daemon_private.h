/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_PRIVATE_H
#define OW_POINT_DAEMON_PRIVATE_H

#include "base/random.h"
#include "base/steps.h"
#include "point/agreement.h"
#include "doctor/chrony.h"
#include "point/daemon.h"
#include "exchange/exchange.h"
#include "record/interval_log.h"
#include "point/session_filter.h"
#include "config/memory_budget.h"
#include "exchange/dial.h"
#include "exchange/session.h"

/*
 * The daemon's parts, for its own files: daemon.c (loop, sources, end), daemon_link.c (connections),
 * daemon_stranger.c (those whose name is not proved yet), daemon_peer.c (what is said on them), daemon_agree.c,
 * daemon_lane.c and daemon_record.c (lanes), daemon_clock.c (a clock that is set), daemon_gap.c (intervals without a
 * lane), daemon_limit.c (what peers may cost), daemon_trust.c (certificates that expire), daemon_reload.c (another
 * configuration).
 */

/* Connections whose peer has not proved its name yet. */
#define OW_UNAUTHENTICATED_MAX 64
/* That are accepted at a time, before others have their turn. */
#define OW_ACCEPTS_MAX 32
/* One part in so many of the time goes to strangers at most; with a reserve, so that a few come in at once. */
#define OW_UNAUTHENTICATED_SHARE      4
#define OW_UNAUTHENTICATED_RESERVE_NS INT64_C(50000000)
/* So long may a peer's messages be handled in a row: those of others wait. */
#define OW_SLICE_NS INT64_C(5000000)
/* From the connection to HELLO; and for the last words of a connection that ends. */
#define OW_HELLO_NS   INT64_C(10000000000)
#define OW_CLOSING_NS INT64_C(5000000000)
/* No PING is answered while so many bytes wait to be read by the peer. */
#define OW_PONG_QUEUE ((size_t)1 << 20)
/* So long may more than half of the memory budget wait to be read by a peer. */
#define OW_UNREAD_NS INT64_C(5000000000)
/* Waiting time between attempts to connect: doubled from the first to the last, and varied by a quarter. */
#define OW_RETRY_FIRST_NS INT64_C(200000000)
#define OW_RETRY_LAST_NS  INT64_C(10000000000)
/* How often a lane that was refused is proposed again. */
#define OW_PROPOSE_NS INT64_C(30000000000)
/* A connection that lasted so long was a good one: the next attempt comes soon. */
#define OW_GOOD_NS INT64_C(1000000000)
/* A peer's certificate is looked at again so often: it may have expired. */
#define OW_RECHECK_NS INT64_C(10000000000)
/* This point's own: from so many days before it expires it is said, and how often. */
#define OW_EXPIRY_DAYS    30
#define OW_EXPIRY_SAID_NS (24 * 3600 * INT64_C(1000000000))
/* Nothing heard for so long: ask; for so long: the connection is dead. */
#define OW_PING_NS INT64_C(3000000000)
#define OW_DEAD_NS INT64_C(12000000000)
/* t0 is so far in the future, so that both points have their lanes by then; and twice the round trip more. */
#define OW_LEAD_NS INT64_C(500000000)
/* A t0 later than this (and two intervals) is a mistake. */
#define OW_LEAD_MAX_NS INT64_C(60000000000)
/* A lane with intervals of at most this length ends at the end of one. */
#define OW_QUICK_NS INT64_C(2000000000)
/* Time for the last answers at the end of the run, beyond that. */
#define OW_DRAIN_NS INT64_C(3000000000)
/* After the clock was set, the time for the answers about intervals before that. Then the points compare clocks anew.
 */
#define OW_STEP_DRAIN_NS INT64_C(1000000000)
/* A lane is proposed so often at once when the answers come after its start. */
#define OW_LATE_ANSWERS_MAX 8
/* Messages that make no sense, before a connection is closed. */
#define OW_NONSENSE_MAX 16
/* Lines about what a peer says, and in how long: it chooses the words, so that no log would take them for the same. */
#define OW_COMPLAINTS_MAX 16
#define OW_COMPLAINTS_NS  INT64_C(60000000000)
/* Other lines about a peer: so many at a time (it may have as many lanes), and one more in this time. */
#define OW_LINES_MAX 1024
#define OW_LINE_NS   INT64_C(1000000000)

/* Peers, with those that a reload has taken away and that are not gone yet. */
#define OW_PEERS_MAX (2 * OW_CONFIG_SEGMENTS_MAX)

struct ow_daemon_peer;

/* Keys and certificates. After a reload a connection goes on with those that it was made with if the new ones would
 * accept its peer, too. */
struct ow_daemon_keys {
	struct ow_tls *tls;
	unsigned users;
};

/* A connection. */
struct ow_daemon_link {
	struct ow_daemon *daemon;
	struct ow_daemon_keys *keys;
	struct ow_daemon_peer *peer; /* NULL until the name is proved */
	struct ow_session *session;
	uint32_t events;     /* that epoll knows */
	int64_t since_ns;    /* steady */
	int64_t heard_ns;    /* steady: the last time that anything came */
	int64_t checked_ns;  /* steady: when the peer's certificate was last looked at */
	int64_t asked_ns;    /* steady: of the PING that waits for an answer, else 0 */
	uint64_t unread_end; /* bytes sent when what waited at unread_ns (steady) has been read */
	int64_t unread_ns;
	bool accepted;     /* the peer has connected to us */
	bool ready;        /* both HELLOs are through */
	bool closing;      /* what is queued goes out, then it is over */
	int64_t closed_ns; /* steady: since when; 0 = not yet */
	bool waits;        /* frames are left: its turn was over */
	int code;          /* of the end: negative errno */
	bool broken;       /* to be dropped as soon as nobody uses it */
	unsigned nonsense; /* messages */
	char address[OW_ADDRESS_TEXT];
	struct ow_error why; /* of broken */
};

struct ow_daemon_peer {
	struct ow_daemon *daemon;
	char name[OW_POINT_NAME];
	char *connect; /* its own; NULL = it connects to us */
	struct ow_daemon_link *link;
	struct ow_dial *dial;          /* a connection that is being made, before there is a link; or NULL */
	int64_t retry_ns, next_try_ns; /* steady */
	char last_failure[200];        /* said once, not at every attempt */
	int64_t propose_ns;            /* steady: when what is missing is proposed again */
	bool known;                    /* it has said its epoch before */
	bool leaving;                  /* in no segment any more: until its lanes have ended */
	bool renew;                    /* a reload has changed segments: agree anew when the old lanes have ended */
	int64_t anew_ns;       /* steady: the clock was set; when to connect anew at the latest. 0 = it was not */
	unsigned complaints;   /* lines about it, */
	int64_t complained_ns; /* steady: since then */
	unsigned lines;        /* that were said beyond one a second */
	int64_t lines_ns;      /* steady: as of then; 0 = none yet */
	int64_t spent_ns, spent_at_ns; /* time that its lanes took to start, beyond its share, at this steady time */
	uint64_t epoch;
	uint32_t wire_max;    /* the highest lane that was ever proposed between us */
	int64_t hello_age_ns; /* of the HELLO that ahead_ns is from, when it was read: at most so much */
	int64_t round_trip_ns;
	int64_t ahead_ns; /* its clock less ours */
};

enum ow_daemon_lane_state {
	OW_LANE_PROPOSED, /* waits for OPENED */
	OW_LANE_REFUSED,
	OW_LANE_ASKED, /* by the peer; to be started */
	OW_LANE_RUNNING,
	OW_LANE_FINISHING, /* no more pages; the last answers are on their way */
};

struct ow_daemon_lane {
	struct ow_daemon *daemon;
	struct ow_daemon_peer *peer;
	const struct ow_config_segment *segment; /* NULL = a reload has ended it */
	uint32_t sources;                        /* of the segment */
	struct ow_message_open open;             /* as agreed on */
	const char *filter;                      /* of this point: into the configuration or `open` */
	unsigned instructions;                   /* of a filter in `open` */
	int64_t agreed_ns;                       /* steady */
	unsigned late_answers;                   /* OPENEDs with a t0 that had passed */
	/* The same without the points' session, where that is left out; else "". */
	char session_filter[OW_MESSAGE_FILTER + OW_SESSION_FILTER];
	bool sending;
	uint32_t wire; /* its number in messages */
	enum ow_daemon_lane_state state;
	uint32_t recorded; /* its number at the recorder */
	struct ow_identity identity;
	uint64_t granted; /* bytes of the budget */
	struct ow_interval_log *ledger;
	struct ow_exchange *exchange;
	int64_t next;              /* interval whose page comes next */
	int64_t until;             /* last interval of the run; INT64_MAX = none yet */
	bool judged;               /* a packet was the same at both points, or it was said that none is */
	char why[OW_MESSAGE_TEXT]; /* of the end */
	int64_t stepped_ns; /* by which the clock was set since it was agreed on: the lane's own goes on as it was */
};

/* A lane that has ended before its time, until another one takes its place: its intervals are unknown. */
struct ow_daemon_gap {
	struct ow_daemon_peer *peer;
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME];
	bool sending;
	int64_t interval; /* number of the next one, */
	int64_t start_ns; /* where it starts, */
	int64_t length_ns;
	int64_t told_ns;  /* and where the last one ended that was told */
	int64_t since_ns; /* steady: when it began */
	int64_t asked_ns; /* steady: when the peer last proposed a lane that would end it; before all times = never */
	char cause[OW_RESULT_CAUSE];
	char then[OW_RESULT_CAUSE]; /* of the intervals after the next one; "" = the same */
};

/* A recording of flows, as its threads know it. */
struct ow_daemon_flows {
	const struct ow_flows_sink *sink;
	unsigned recording;
};

struct ow_daemon {
	struct ow_daemon_flows flows[OW_CONFIG_FLOWS_MAX];
	const struct ow_config *config;
	struct ow_daemon_options options;
	struct ow_recorder *recorder;
	struct ow_daemon_keys *keys;
	int epoll_fd, listen_fd, timer_fd;
	struct ow_clocks *clocks;
	struct ow_clock_state clock; /* as of the last tick; of files not known */
	bool clock_known;            /* its state was told */
	bool by_chrony;
	struct ow_steps steps;
	uint64_t epoch;
	struct ow_random jitter;
	struct ow_daemon_peer *peers[OW_PEERS_MAX];
	unsigned peer_count;
	struct ow_daemon_link *strangers[OW_UNAUTHENTICATED_MAX];
	int64_t strangers_ns, strangers_at_ns; /* time spent on them beyond their share, at this steady time */
	bool deaf;                             /* to strangers: their share is used up */
	bool hurry;                            /* a link's turn was over: it goes on at once */
	struct ow_daemon_lane *lanes[OW_LANES_MAX];
	unsigned lane_count;
	struct ow_daemon_gap *gap;
	unsigned gaps, gap_room;
	uint32_t last_wire;
	uint64_t memory_left;
	bool files;                              /* the sources are files */
	uint32_t away;                           /* bit i: interface i is not there now, */
	struct ow_outage outage[OW_SOURCES_MAX]; /* since then, for this cause */
	double speed;                            /* of the clock */
	int64_t passed_ns;
	int64_t ended_ns;     /* steady: when all files had ended; 0 = not yet */
	int64_t ended_now_ns; /* their clock then */
	int64_t latest_ns;    /* of all packets */
	int64_t started_ns;   /* steady */
	bool stopping, at_once;
	int64_t deadline_ns; /* steady: of stopping */
	int64_t expiry_ns;   /* steady: when it is said next that the certificate expires; 0 = at once */
	bool has_results;    /* since the last flush */
};

void ow_daemon_log(struct ow_daemon *daemon, enum ow_event level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Tells the sink that the connection with a peer has come or gone. */
void ow_daemon_tell_peer(struct ow_daemon *daemon, const char *peer, bool connected);
/* Counts what was refused; peer may be NULL. */
void ow_daemon_refused(struct ow_daemon *daemon, enum ow_refused what, const char *peer);
/* What a peer does: "PEER: ...", unless it does so much that nobody could read it. */
void ow_daemon_peer_log(struct ow_daemon_peer *peer, enum ow_event level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A message of a peer is refused: counted, and said, unless too much has been said about it lately. */
void ow_daemon_complain(struct ow_daemon_peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ow_daemon_keys_create(const struct ow_config *config, struct ow_daemon_keys **ret_keys, struct ow_error *err);
void ow_daemon_keys_release(struct ow_daemon_keys *keys);
/* The clock that stamps the packets, as of the last look at it (daemon_clock.c). */
int64_t ow_daemon_now_ns(const struct ow_daemon *daemon);
/* The same as if it had not been set since the lane was agreed on. */
int64_t ow_daemon_lane_now_ns(const struct ow_daemon_lane *lane);

/* The clock: whether it was set. To be asked before anything is done with packets or times that are newer than the last
 * time; on a step all lanes end, and the points agree anew. */
void ow_daemon_clock_look(struct ow_daemon *daemon);
/* How well it is known; what a step has begun. */
void ow_daemon_clock_tick(struct ow_daemon *daemon);

/* What a peer may cost (daemon_limit.c). */
/* Whether there is room for a lane that a peer proposes. -ENOSPC. */
int ow_daemon_limit_lane(const struct ow_daemon *daemon, const struct ow_config_segment *segment,
                         const struct ow_message_open *open, struct ow_error *why);
/* Whether its filter can be had: after all other questions, because this one costs time. -EINVAL, -EAGAIN, -ENOSPC. */
int ow_daemon_limit_filter(struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *filter,
                           unsigned *ret_instructions, struct ow_error *why);
/* A lane of the peer has taken the time since then (steady) to start. */
void ow_daemon_peer_spend(struct ow_daemon_peer *peer, int64_t begin_ns);
double ow_daemon_results_per_s(int64_t length_ns);
/* Whether a segment may have so many gaps, with so many results a second. */
bool ow_daemon_limit_gaps(unsigned gaps, double results);

/* Gaps. From interval on (a number of the lane) there are no results of it, because. */
void ow_daemon_gap_open(const struct ow_daemon_lane *lane, int64_t interval, const char *cause);
/* Another cause for all with this peer: for the intervals after the current one. */
void ow_daemon_gaps_explain(struct ow_daemon_peer *peer, const char *cause);
/* The clock was set: unknown until then by the clock before; then from now on by the new one. */
void ow_daemon_gaps_step(struct ow_daemon *daemon, int64_t before_ns, int64_t now_ns);
/* Results of what has passed; gaps end where lanes begin. */
void ow_daemon_gaps_tick(struct ow_daemon *daemon);
/* The peer proposes a lane: what it replaced is still wanted. */
void ow_daemon_gaps_asked(struct ow_daemon_peer *peer, const struct ow_message_open *open);
/* The peer or its segments are gone for good. */
void ow_daemon_gaps_forget(struct ow_daemon_peer *peer);

/* Connections. */
/* It is dropped as soon as nobody uses it. */
void ow_daemon_link_break(struct ow_daemon_link *link, const char *why);
/* daemon_queue.c: breaks the connection of the peer that reads least, if too much waits. */
void ow_daemon_queues_bound(struct ow_daemon *daemon, int64_t steady_ns);
int ow_daemon_link_open(struct ow_daemon *daemon, struct ow_daemon_peer *peer, int fd, struct ow_error *err);
void ow_daemon_link_accept(struct ow_daemon *daemon);
/* Reads, writes, and acts on what came. May free the link. */
void ow_daemon_link_drive(struct ow_daemon_link *link);
/* Ends it, with a line in the log. */
void ow_daemon_link_drop(struct ow_daemon_link *link, const char *why);
/* Gives up a connection that is being made, if there is one. */
void ow_daemon_link_hang_up(struct ow_daemon_peer *peer);
void ow_daemon_link_send(struct ow_daemon_link *link, const struct ow_message *message);
void ow_daemon_link_send_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);
/* Tells the peer why, and closes. */
void ow_daemon_link_bye(struct ow_daemon_link *link, const char *why);
/* Connects where it is time to, asks silent peers, sends what waits, buries the dead. */
void ow_daemon_links_tend(struct ow_daemon *daemon, int64_t steady_ns);
void ow_daemon_links_free(struct ow_daemon *daemon);

/* Ends the connections whose peers these keys do not accept (daemon_trust.c). */
void ow_daemon_links_check(struct ow_daemon *daemon);
/* The same of the one that was not looked at for longest, if it is time to; and whether this point's own certificate is
 * about to expire. */
void ow_daemon_trust_tick(struct ow_daemon *daemon, int64_t steady_ns);

/* The socket's events of a link, as epoll shall know them. */
int ow_daemon_link_watch(struct ow_daemon_link *link, int operation);

/* Strangers. */
/* Takes a new one in; where there is no room the oldest of the host that has most of them goes. */
void ow_daemon_stranger_add(struct ow_daemon_link *link);
void ow_daemon_stranger_forget(struct ow_daemon_link *link);
/* A stranger took so long. */
void ow_daemon_strangers_spend(struct ow_daemon *daemon, int64_t steady_ns, int64_t spent_ns);
/* Listens to them again when their share allows it, drives those whose time has come. */
void ow_daemon_strangers_tend(struct ow_daemon *daemon, int64_t steady_ns);
/* A connection is refused: counted by how it ended. */
void ow_daemon_stranger_refuse(struct ow_daemon *daemon, int code);

/* What peers say. */
struct ow_daemon_peer *ow_daemon_peer_find(const struct ow_daemon *daemon, const char *name);
/* Those of a configuration that are not there yet. */
int ow_daemon_peers_add(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err);
void ow_daemon_peer_free(struct ow_daemon_peer *peer);
void ow_daemon_peer_greet(struct ow_daemon_link *link);
void ow_daemon_peer_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);

/* Lanes: their life. */
struct ow_daemon_lane *ow_daemon_lane_of_wire(struct ow_daemon_peer *peer, uint32_t wire);
/* NULL: no memory, or too many. */
struct ow_daemon_lane *ow_daemon_lane_add(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                                          const struct ow_message_open *open, uint32_t wire, bool sending);
/* The filter without the points' session, if the class has none; "" = as it is. */
int ow_daemon_lane_session(const struct ow_daemon_lane *lane, char *text, size_t size);
/* Recorder, books and exchange, as `open` says. On failure the caller removes the lane. */
int ow_daemon_lane_start(struct ow_daemon_lane *lane, struct ow_error *err);
/* Nothing more is recorded. */
void ow_daemon_lane_deafen(struct ow_daemon_lane *lane);
/* Tells the sum of its results. */
void ow_daemon_lane_total(struct ow_daemon_lane *lane);
void ow_daemon_lane_remove(struct ow_daemon_lane *lane);
/* Gives up on all that is not answered, tells the sum and removes it. */
void ow_daemon_lane_end(struct ow_daemon_lane *lane, const char *cause);
/* All of a peer that will not answer any more: it "has left". */
void ow_daemon_lanes_end(struct ow_daemon_peer *peer, const char *how);
void ow_daemon_lanes_free(struct ow_daemon *daemon);
/* "x/all to paris" */
#define OW_LANE_TEXT (3 * OW_RESULT_NAME + 16)
void ow_daemon_lane_text(const struct ow_daemon_lane *lane, char text[OW_LANE_TEXT]);

/* Lanes: agreement. */
/* Clocks of files say nothing: always. */
bool ow_daemon_clocks_fit(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment);
void ow_daemon_lanes_propose(struct ow_daemon_peer *peer);
void ow_daemon_lane_opened(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_opened *opened);
void ow_daemon_lane_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open);
/* Starts what was asked for. All at once, so that they share the memory evenly. */
void ow_daemon_lanes_accept(struct ow_daemon_peer *peer);
void ow_daemon_lane_refused(struct ow_daemon_peer *peer, uint32_t wire, const char *why);

/* Lanes: what goes through them. */
int ow_daemon_lanes_record(struct ow_daemon *daemon, struct ow_error *err);
void ow_daemon_lanes_tick(struct ow_daemon *daemon);
/* The connection with the same peer is there again. */
void ow_daemon_lanes_connected(struct ow_daemon_peer *peer);
/* It is lost. */
void ow_daemon_lanes_disconnected(struct ow_daemon_peer *peer);
/* The peer ends it before this interval, and says why. */
void ow_daemon_lane_bye(struct ow_daemon_peer *peer, uint32_t wire, int64_t interval, const char *why);
/* It ends after the last page that was closed, here and at the peer, because the clock was set. */
void ow_daemon_lane_break(struct ow_daemon_lane *lane, const char *why);
/* It ends with the current interval, here and at the peer. One that was not agreed on yet is gone. */
void ow_daemon_lane_stop(struct ow_daemon_lane *lane, const char *why);
/* Not more than this share of the budget any more. */
void ow_daemon_lane_shrink(struct ow_daemon_lane *lane, uint64_t bytes);
/* Whether any of a peer has come to its end and still waits for answers. */
bool ow_daemon_lanes_ending(const struct ow_daemon_peer *peer);
/* Lanes that the configuration wants. */
unsigned ow_daemon_lanes_wanted(const struct ow_config *config);
/* Those that it wants at least and that have no memory yet. */
unsigned ow_daemon_lanes_missing(const struct ow_daemon *daemon);
/* What a reload has begun. */
void ow_daemon_reload_tick(struct ow_daemon *daemon);
/* No lane goes on beyond the current interval. */
void ow_daemon_lanes_stop(struct ow_daemon *daemon, bool at_once);
/* Whether all lanes have given their last result. */
bool ow_daemon_lanes_done(const struct ow_daemon *daemon);

#endif
